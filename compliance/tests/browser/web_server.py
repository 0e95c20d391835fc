"""The web server as the stack starts it, over the tests' databases, in a process of its own."""

import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import requests
from django.conf import settings

from compliance.localdev.servers.supervisor import part_commands
from compliance.tests.nodes import node_environment
from compliance.tests.waiting import eventually

START_SECONDS = 120
STOP_SECONDS = 30


@contextmanager
def web_server(folder: Path, more: Callable[[str], Mapping[str, str]] = lambda address: {}) -> Iterator[str]:
    """Serve on a free port of loopback until the block ends; yield the address. Its log is in `folder`.

    `more` gives environment variables for the address.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        number = listening.fileno()
        command = part_commands(f"fd://{number}", {"WEB_WORKERS": "1"})["web"]
        with (folder / "web.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=settings.BASE_DIR,
                env=_environ()
                | {"WEBAUTHN_ORIGIN": address.replace("127.0.0.1", "localhost")}
                | dict(more(address)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[number],
            )
    try:
        ready = eventually(lambda: process.poll() is not None or _is_up(address), seconds=START_SECONDS)
        assert ready, "the web server does not answer"
        assert process.poll() is None, (folder / "web.log").read_text()
        yield address
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def _environ() -> dict[str, str]:
    loopback = {"WEBHOOK_ALLOW_HTTP": "true", "WEBHOOK_ALLOW_PRIVATE_ADDRESSES": "true"}
    return node_environment() | {"SECOND_FACTOR": "operators", **loopback}


def _is_up(address: str) -> bool:
    try:
        return requests.get(f"{address}/health/live", timeout=5).status_code == 200
    except requests.RequestException:
        return False
