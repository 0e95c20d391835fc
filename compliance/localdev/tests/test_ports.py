"""Which ports the stack takes, keeps and gives up."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from compliance.localdev import ports
from compliance.localdev.console import StepFailed
from compliance.localdev.state import read_json, write_json


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server((ports.HOST, 0)) as server:
        yield server.getsockname()[1]


def free_port() -> int:
    with socket.create_server((ports.HOST, 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_a_listening_port_is_not_free(taken: int) -> None:
    assert not ports.is_free(taken)
    assert ports.answers(ports.HOST, taken)


def test_a_servers_port_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"

    first = ports.private_port(file, "redis")

    assert first in ports.PRIVATE_RANGE
    assert ports.private_port(file, "redis") == first
    assert read_json(file) == {"redis": first}


def test_a_port_that_somebody_took_is_replaced(tmp_path: Path, taken: int) -> None:
    file = tmp_path / "ports.json"
    write_json(file, {"postgres": taken, "redis": 1234})

    port = ports.private_port(file, "postgres")

    assert port != taken
    assert read_json(file) == {"postgres": port, "redis": 1234}


def test_the_port_asked_for_is_used_and_not_kept(tmp_path: Path) -> None:
    file, port = tmp_path / "ports.json", free_port()

    assert ports.web_port(file, asked=str(port)) == port
    assert read_json(file) == {}


def test_a_taken_port_that_was_asked_for_fails(tmp_path: Path, taken: int) -> None:
    with pytest.raises(StepFailed, match=str(taken)):
        ports.web_port(tmp_path / "ports.json", asked=str(taken))


@pytest.mark.parametrize("asked", ["0", "65536", "-1", "http", "8000 ", "\u0668"])
def test_what_is_no_port_fails(tmp_path: Path, asked: str) -> None:
    with pytest.raises(StepFailed, match="is no port"):
        ports.web_port(tmp_path / "ports.json", asked=asked)


def test_another_port_is_chosen_when_the_default_is_taken(
    tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "WEB_DEFAULT", taken)
    file = tmp_path / "ports.json"

    port = ports.web_port(file, asked=None)

    assert port != taken
    assert read_json(file) == {"web": port}
