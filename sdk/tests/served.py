"""The service's web server on a port of its own, which a test may kill and start again."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from django.conf import settings

from compliance.localdev.servers.supervisor import part_commands
from compliance.tests.browser.web_server import _environ
from compliance.tests.waiting import eventually

START_SECONDS = 120


@dataclass
class Service:
    """A web server over the tests' databases."""

    folder: Path
    more: Mapping[str, str]
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve, on the same port as before; returns once it answers."""
        with socket.create_server(("127.0.0.1", self.port)) as listening:
            self.port = listening.getsockname()[1]
            number = listening.fileno()
            command = part_commands(f"fd://{number}", {"WEB_WORKERS": "1"})["web"]
            with (self.folder / "web.log").open("ab") as log:
                self.process = subprocess.Popen(
                    command,
                    cwd=settings.BASE_DIR,
                    env={**_environ(), "BASE_URL": self.address, **self.more},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[number],
                    start_new_session=True,
                )
        assert eventually(self._is_up, seconds=START_SECONDS), (self.folder / "web.log").read_text()

    def kill(self) -> None:
        """`kill -9` the server and its workers."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def _is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "web.log").read_text()
        try:
            return httpx.get(f"{self.address}/health/live", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False


@contextmanager
def serving(folder: Path, **more: str) -> Iterator[Service]:
    """The service until the block ends; `more` are settings."""
    service = Service(folder, {"RATE_LIMIT_EVENTS": "100000000", "SIGNALS_LONG_POLL_SECONDS": "0.2", **more})
    try:
        service.start()
        yield service
    finally:
        service.stop()
