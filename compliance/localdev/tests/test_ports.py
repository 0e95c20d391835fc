"""Which ports the stack takes, keeps and gives up."""

import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from compliance.localdev import ports
from compliance.localdev.console import StepFailed
from compliance.localdev.servers import processes
from compliance.localdev.servers.supervisor import part_commands
from compliance.localdev.state import read_json, write_json
from compliance.tests.waiting import eventually


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server((ports.HOST, 0)) as server:
        yield server.getsockname()[1]


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
    file, port = tmp_path / "ports.json", ports.free_port()

    with ports.web_listener(file, asked=str(port)) as listener:
        assert listener.getsockname()[1] == port
    assert read_json(file) == {}


def test_a_taken_port_that_was_asked_for_fails(tmp_path: Path, taken: int) -> None:
    with pytest.raises(StepFailed, match=str(taken)):
        ports.web_listener(tmp_path / "ports.json", asked=str(taken))


@pytest.mark.parametrize("asked", ["0", "65536", "-1", "http", "8000 ", "\u0668"])
def test_what_is_no_port_fails(tmp_path: Path, asked: str) -> None:
    with pytest.raises(StepFailed, match="is no port"):
        ports.web_listener(tmp_path / "ports.json", asked=asked)


def test_another_port_is_chosen_when_the_default_is_taken(
    tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ports, "WEB_DEFAULT", taken)
    file = tmp_path / "ports.json"

    with ports.web_listener(file, asked=None) as listener:
        port = listener.getsockname()[1]

    assert port != taken
    assert read_json(file) == {"web": port}


def test_a_stranger_gets_no_port_between_its_choice_and_the_web_servers_end(tmp_path: Path) -> None:
    def ask() -> str:
        with urllib.request.urlopen(f"http://{ports.HOST}:{port}/", timeout=60) as response:
            return str(response.read())

    def stranger_is_refused() -> bool:
        with suppress(OSError), HTTPServer((ports.HOST, port), BaseHTTPRequestHandler):
            return False
        return True

    with ports.web_listener(tmp_path / "ports.json", asked=None) as listener:
        port, fd = listener.getsockname()[1], listener.fileno()
        *command, _ = part_commands(f"fd://{fd}", {"WEB_WORKERS": "1"})["web"]
        place = command.index("--config")
        command[place : place + 2] = ["wsgiref.simple_server:demo_app"]
        for _ in range(2):
            assert stranger_is_refused()
            web = processes.spawn(
                command, log=tmp_path / "web.log", env=os.environ, cwd=tmp_path, pass_fds=[fd]
            )
            try:
                assert "Hello world!" in ask()
                assert stranger_is_refused()
            finally:
                os.killpg(web.pid, signal.SIGKILL)
                web.wait()
    # A worker that was killed with its parent holds the port until the kernel has ended it.
    assert eventually(lambda: not stranger_is_refused())
