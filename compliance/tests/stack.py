"""A whole stack, started with `./run` in a folder of its own, which all drills of a run share.

Each drill leaves it healthy, so that a failure names the drill that broke it.
"""

import os
import re
import shlex
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from django.conf import settings

from compliance.localdev.layout import Layout
from compliance.localdev.ports import HOST, free_port
from compliance.localdev.servers.servers import Servers

# Variables that ./test gives this process; the stack under test has its own.
CONTRACT = re.compile(
    r"((TEST_)?DATABASE_(OWNER_|READER_)?URL|DATABASE_(AUDITOR|CITUS|READER)|REDIS_URL|PKCS11_.*|SOFTHSM2_CONF"
    r"|SECRET_KEY|ENCRYPTION_KEYS|BASE_URL|ALLOWED_HOSTS|WEB_.*|WEBHOOK_.*|SERVICE_NAME|PORT|LOCAL_DIR|PYTHONPATH)"
)
HEAL_SECONDS = 60


@dataclass
class Stack:
    """A running stack, and access to its parts."""

    folder: Path
    exports: dict[str, str]
    started: subprocess.CompletedProcess[str]
    mail_port: int
    """Where it looks for a mail server; a drill that wants one runs it there."""

    @property
    def tokens(self) -> Path:
        """The folder of the embedded SoftHSM's tokens."""
        return next(self.folder.glob("softhsm/**/tokens"))

    @property
    def servers(self) -> Servers:
        return Servers(Layout(local=self.folder))

    def stop(self, server: str) -> None:
        """Stop the data server `postgres` or `redis`."""
        getattr(self.servers, server).stop()

    def start(self, server: str) -> None:
        """Start the data server `postgres` or `redis`."""
        with warnings.catch_warnings():
            # It outlives the object that started it.
            warnings.simplefilter("ignore", ResourceWarning)
            getattr(self.servers, server).start()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(self.folder, *arguments, **mail_at(self.mail_port))

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = "LIVE_API_KEY"
    ) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.exports[key]}"} if key else {}
        url = self.exports["BASE_URL"] + path
        return requests.request(method, url, json=body, headers=headers, timeout=40)

    def is_ready(self) -> bool:
        return self.call("GET", "/health/ready", key=None).status_code == 200

    def register(self) -> requests.Response:
        return self.call("POST", "/v1/agents", {"name": "drill", "model_hash": "h"})

    def new_agent(self) -> str:
        agent: str = self.register().json()["data"]["id"]
        return agent

    def certify(self, agent_id: str) -> requests.Response:
        return self.call("POST", f"/v1/agents/{agent_id}/certify")


def run(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not CONTRACT.fullmatch(name)}
    environment |= {"LOCAL_DIR": str(folder), **environ}
    return subprocess.run(
        [str(settings.BASE_DIR / "run"), *arguments],
        env=environment,
        cwd=settings.BASE_DIR,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=900,
        check=False,
    )


def mail_at(port: int) -> dict[str, str]:
    """The settings of a mail server on this port."""
    return {"EMAIL_HOST": HOST, "EMAIL_PORT": str(port), "EMAIL_USE_TLS": "false"}


def exports_of(folder: Path) -> dict[str, str]:
    """Return what `./run env` prints, as a shell reads it."""
    lines = run(folder, "env").stdout.splitlines()
    pairs = (shlex.split(line.removeprefix("export "))[0].partition("=") for line in lines)
    return {name: value for name, _, value in pairs}


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder, mail_port = tmp_path_factory.mktemp("stack"), free_port()
    try:
        started = run(folder, "--detach", **mail_at(mail_port))
        assert started.returncode == 0, started.stdout[-4000:] + started.stderr[-4000:]
        yield Stack(folder, exports_of(folder), started, mail_port)
    finally:
        run(folder, "stop")
        shutil.rmtree(folder, ignore_errors=True)


def processes_of(stack: Stack, name: str) -> list[int]:
    """Process ids whose command holds `name` and whose environment is this stack's."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
            environment = (folder / "environ").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if name in command and str(stack.folder) in environment:
            found.append(int(folder.name))
    return found
