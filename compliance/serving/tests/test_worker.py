"""The web server's processes, started by gunicorn as in production: who answers what, and who may die."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from compliance.serving.django_process import MOST_WAITING
from compliance.serving.server import BATCHES
from compliance.tests.waiting import eventually

pytestmark = pytest.mark.slow

SECONDS = 60.0
GRACE = 1


@dataclass
class Running:
    """A gunicorn with one worker that serves the tiny site."""

    process: subprocess.Popen[bytes]
    port: int

    def ask(self, path: str, body: bytes = b"", holder: str = "") -> dict[str, Any]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)) as client:
            client.request("POST", path, body, {"holder": holder})
            answer = client.getresponse()
            found: dict[str, Any] = json.loads(answer.read())
            return found | {"status": answer.status}

    def is_answering(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            return bool(self.ask("/here")["status"] == 200 and self.ask("/there")["status"] == 200)
        return False

    def pids(self) -> list[int]:
        """The processes of the worker's event loop and of its views."""
        return [self.ask(path)["pid"] for path in ("/here", "/there")]

    def has_a_sleeper(self) -> bool:
        """Whether a request with `?seconds=` has reached the views."""
        return bool(self.ask("/there")["slept"])


@contextmanager
def serving(*options: str) -> Iterator[Running]:
    # The socket is handed on, so that no other suite on the machine takes its port meanwhile.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, descriptor = listener.getsockname()[1], listener.fileno()
        command = [
            *(sys.executable, "-m", "gunicorn", "--config", "python:compliance.serving.config", *options),
            *("--bind", f"fd://{descriptor}", "--workers", "1", "compliance.serving.tests.tiny:site"),
        ]
        process = subprocess.Popen(
            command, cwd=settings.BASE_DIR, pass_fds=[descriptor], start_new_session=True
        )
    try:
        found = Running(process, port)
        assert eventually(found.is_answering, seconds=SECONDS)
        yield found
    finally:
        # Workers outlive a master that is killed.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def patient_master() -> Iterator[Running]:
    """A server whose master lives through the tests, whatever becomes of its worker."""
    with serving("--graceful-timeout", str(GRACE)) as found:
        yield found


@pytest.fixture
def running(patient_master: Running) -> Running:
    assert eventually(patient_master.is_answering, seconds=SECONDS)
    return patient_master


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for doesn't."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_what_the_fast_path_leaves_is_answered_by_another_process(running: Running) -> None:
    fast, declined, elsewhere = (running.ask(path) for path in ("/here", "/here?a=b", "/%C3%A9%FF"))

    assert [one["fast"] for one in (fast, declined, elsewhere)] == [True, False, False]
    assert elsewhere["path"] == "/Ã©ÿ"
    assert fast["pid"] != declined["pid"] == elsewhere["pid"]


def test_answers_of_many_at_once_are_not_mixed_up(running: Running) -> None:
    def ask(number: int) -> tuple[int, int]:
        return number, running.ask("/there", b"a" * number)["length"]

    with ThreadPoolExecutor(16) as askers:
        found = list(askers.map(ask, [number * 997 for number in range(300)]))

    assert all(length == number for number, length in found)


@pytest.mark.parametrize(("path", "share"), [("/there", settings.WEB_THREADS // 2), (min(BATCHES), 1)])
def test_holder_has_its_share_of_the_views_and_others_go_on(running: Running, path: str, share: int) -> None:
    with ExitStack() as stack:
        for _ in range(share + MOST_WAITING):
            client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=SECONDS)
            stack.enter_context(closing(client)).request("POST", f"{path}?seconds=600", b"", {"holder": "a"})

        # Those that wait fill the queue of their holder alone.
        assert eventually(lambda: running.ask(path, holder="a")["status"] == 503, seconds=SECONDS)
        other = running.ask(path, holder="b")

    assert (other["status"], other["slept"]) == (200, share)
    # Another worker serves the tests that follow: this one's views sleep on.
    pids = running.pids()
    os.kill(pids[0], signal.SIGKILL)
    assert eventually(lambda: not any(map(is_alive, pids)), seconds=SECONDS)


@pytest.mark.parametrize("victim", ["loop", "views"])
def test_worker_and_its_views_live_and_die_together(running: Running, victim: str) -> None:
    before = dict(zip(["loop", "views"], running.pids(), strict=True))

    os.kill(before[victim], signal.SIGKILL)
    with suppress(OSError, http.client.HTTPException):
        running.ask("/there")

    assert eventually(lambda: not any(map(is_alive, before.values())), seconds=SECONDS)
    assert eventually(running.is_answering, seconds=SECONDS)
    assert not set(running.pids()) & set(before.values())


def test_views_that_are_stuck_die_with_their_worker(running: Running) -> None:
    loop, views = running.pids()
    with ThreadPoolExecutor(1) as askers:
        stuck = askers.submit(running.ask, "/there?seconds=60")
        assert eventually(running.has_a_sleeper, seconds=SECONDS)

        os.kill(loop, signal.SIGKILL)

        assert eventually(lambda: not is_alive(views), seconds=SECONDS)
        assert isinstance(stuck.exception(), ConnectionError | http.client.HTTPException)


def test_worker_whose_grace_is_over_ends_with_its_views(running: Running) -> None:
    pids = running.pids()
    with closing(http.client.HTTPConnection("127.0.0.1", running.port, timeout=SECONDS)) as client:
        client.request("POST", f"/there?seconds={GRACE + 2}")
        assert eventually(running.has_a_sleeper, seconds=SECONDS)

        os.kill(pids[0], signal.SIGTERM)

        assert eventually(lambda: not any(map(is_alive, pids)), seconds=SECONDS)


def test_server_that_is_asked_to_end_answers_what_is_under_way() -> None:
    with serving() as running, ThreadPoolExecutor(1) as askers:
        pids = running.pids()
        under_way = askers.submit(running.ask, "/there?seconds=1")
        assert eventually(running.has_a_sleeper, seconds=SECONDS)

        running.process.send_signal(signal.SIGTERM)

        assert under_way.result()["status"] == 200
        assert running.process.wait(SECONDS) == 0
        assert not any(map(is_alive, pids))
