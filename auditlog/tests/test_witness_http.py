"""A witness as a process: the protocol over HTTP, clients that misbehave, and how it starts."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from django.conf import settings

from auditlog.tests.log_keys import ORIGIN, SigningKey
from auditlog.tests.witness_process import (
    FORK,
    LOG,
    NEXT_LOG,
    OTHER_LOG,
    TREE,
    WitnessProcess,
    make_request,
    start_witness,
)
from auditlog.tlog.checkpoints import MAX_REQUEST_BYTES, SIZE_CONTENT_TYPE
from auditlog.tlog.notes import Note, parse_signatures, verified


@pytest.fixture
def running(tmp_path: Path) -> Iterator[WitnessProcess]:
    found = start_witness(tmp_path / "state", [LOG.public, NEXT_LOG.public])
    yield found
    found.kill()


def test_protocol_over_http(running: WitnessProcess) -> None:
    status, content_type, line = running.add(make_request(0, 5))
    assert (status, content_type) == (200, "text/plain; charset=utf-8")
    running.key.verify(TREE.checkpoint(5).text(), parse_signatures(line)[0])

    assert running.add(make_request(0, 7)) == (409, SIZE_CONTENT_TYPE, "5\n")
    assert running.add(make_request(5, 9, tree=FORK))[0] == 422
    assert running.add(make_request(5, 7, key=SigningKey()))[0] == 403
    assert running.add(make_request(0, 7, key=OTHER_LOG))[0] == 404
    assert running.ask("POST", "/add-checkpoint", b"old\n")[0] == 400


def test_latest_checkpoints_can_be_read(running: WitnessProcess) -> None:
    assert running.ask("GET", "/")[::2] == (200, "")
    running.add(make_request(0, 5))
    origin_hash = sha256(ORIGIN.encode()).hexdigest()

    status, _, text = running.ask("GET", f"/{origin_hash}/checkpoint")

    assert (status, running.ask("GET", "/state")[2]) == (200, f"5 {ORIGIN}\n")
    assert len(verified(Note.parse(text), [running.key, LOG.public])) == 2
    for path in (f"/{'0' * 64}/checkpoint", f"/{origin_hash}", f"/{origin_hash}/key", "/../key", "/key"):
        assert running.ask("GET", path)[0] == 404


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("POST /add-checkpoint HTTP/1.1", 411),
        ("POST /add-checkpoint HTTP/1.1\r\nTransfer-Encoding: chunked", 411),
        ("POST /add-checkpoint HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2", 400),
        ("POST /add-checkpoint HTTP/1.1\r\nContent-Length: -1", 400),
        ("POST /add-checkpoint HTTP/1.1\r\nContent-Length: +1", 400),
        (f"POST /add-checkpoint HTTP/1.1\r\nContent-Length: {MAX_REQUEST_BYTES + 1}", 413),
        (f"POST /add-checkpoint HTTP/1.1\r\nContent-Length: {'9' * 5000}", 413),
        ("PUT /add-checkpoint HTTP/1.1\r\nContent-Length: 0", 501),
        ("GET / HTTP/3.0", 505),
        ("nonsense", 400),
    ],
)
def test_request_that_is_not_read_is_answered_and_closed(
    running: WitnessProcess, head: str, status: int
) -> None:
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(f"{head}\r\n\r\n".encode())
        answer = client.makefile("rb").readline()

    assert answer.split()[1].decode() == str(status)


def test_without_stored_state_there_is_no_cosignature(running: WitnessProcess, tmp_path: Path) -> None:
    (tmp_path / "state").rename(tmp_path / "moved")

    assert running.add(make_request(0, 5))[0] == 503

    (tmp_path / "moved").rename(tmp_path / "state")
    assert running.add(make_request(0, 7))[0] == 200


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, cwd=settings.BASE_DIR, capture_output=True, text=True)


def test_second_process_cannot_share_the_folder(running: WitnessProcess, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "auditlog.witness", "--state", str(tmp_path / "state")]
    second = run([*command, "--log", LOG.public.encode()])
    shown = run([*command, "--show-key"])

    assert (second.returncode, second.stderr) == (1, f"Another process uses {tmp_path / 'state'}\n")
    assert shown.stdout == f"{running.key.encode()}\n"


def test_policy_names_the_logs(tmp_path: Path) -> None:
    policy = tmp_path / "policy"
    policy.write_text(f"log {LOG.public.encode()}\nlog {OTHER_LOG.public.encode()}\nquorum none\n")

    running = start_witness(
        tmp_path / "state", [], program=("-m", "auditlog.witness", "--policy", str(policy))
    )

    try:
        assert running.add(make_request(0, 5))[0] == 200
        assert running.add(make_request(0, 5, key=OTHER_LOG))[0] == 200
        assert running.add(make_request(0, 5, key=SigningKey("unknown")))[0] == 404
    finally:
        running.kill()


def test_it_needs_neither_django_nor_the_services_packages() -> None:
    program = (
        "import auditlog.witness.__main__, sys; print(*{name.partition('.')[0] for name in sys.modules})"
    )

    found = run([sys.executable, "-c", program]).stdout.split()

    assert "cryptography" in found
    assert set(found).isdisjoint({"django", "redis", "psycopg", "requests", "certifi", "msgspec"})
