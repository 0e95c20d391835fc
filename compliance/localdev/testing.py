"""`./test`: databases, tokens and a Valkey of its own for each run, then pytest, then all is gone again."""

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from .console import StepFailed, say, step
from .databases import drop_databases
from .environment import application, has_own_tokens, merged
from .layout import Layout
from .processes import run_foreground
from .redis import RedisServer
from .servers import Servers, in_use
from .softhsm import SoftHsm
from .state import LockBusy, locked


@dataclass(frozen=True)
class TestRun:
    """One invocation of `./test`; `name` is unique and part of its databases' names."""

    servers: Servers
    name: str

    @property
    def folder(self) -> Path:
        return _runs(self.servers.layout) / self.name

    @property
    def redis(self) -> RedisServer:
        ports = self.folder / "ports.json"
        return RedisServer(
            self.folder / "redis", ports, self.servers.secrets["redis_password"], snapshots=False
        )

    @property
    def softhsm(self) -> SoftHsm:
        return self.servers.tokens_in(self.folder / "softhsm")

    def start(self) -> None:
        """Make the run's own parts."""
        with step("Valkey and SoftHSM tokens of this run"):
            self.redis.start()
            if not has_own_tokens(os.environ):
                self.softhsm.ensure()

    def environment(self) -> dict[str, str]:
        """The contract over this run's parts; Django itself puts `test_` before the databases' names."""
        live, test = self.servers.database_urls()
        contract = {
            **application(self.servers.secrets, base_url=self.servers.base_url()),
            **self.softhsm.environment(),
            "DATABASE_URL": with_suffix(live, self.name),
            "TEST_DATABASE_URL": with_suffix(test, self.name),
            "REDIS_URL": self.redis.url(),
        }
        layout = self.servers.layout
        return merged(contract, os.environ, root=layout.root, cache=layout.local / "pycache")

    def clear(self) -> None:
        """Remove whatever the run left: its server, databases and files."""
        self.redis.stop()
        drop_databases(self.servers.database_urls()[0], self.name)
        shutil.rmtree(self.folder, ignore_errors=True)


def run_tests(layout: Layout, arguments: list[str]) -> int:
    """Run pytest with `arguments`; its exit code."""
    servers = Servers(layout)
    with in_use(servers, start=servers.start_postgres):
        _clear_dead_runs(servers)
        with _own_run(servers) as run:
            command = [sys.executable, "-m", "pytest", *arguments]
            return run_foreground(command, cwd=layout.root, env=run.environment())


def with_suffix(url: str, suffix: str) -> str:
    """`url` with `_suffix` added to its database's name."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path}_{suffix}"))


@contextmanager
def _own_run(servers: Servers) -> Iterator[TestRun]:
    """A started run; its lock says that it lives."""
    run = TestRun(servers, f"r{secrets.token_hex(5)}")
    run.folder.mkdir(mode=0o700, parents=True)
    with locked(run.folder / "lock"):
        try:
            run.start()
            yield run
        finally:
            run.clear()


def _runs(layout: Layout) -> Path:
    return layout.local / "test"


def _clear_dead_runs(servers: Servers) -> None:
    """Remove what runs left that were killed; nobody holds their locks any more."""
    for folder in sorted(_runs(servers.layout).glob("r*")):
        try:
            with locked(folder / "lock", wait=False):
                TestRun(servers, folder.name).clear()
        except LockBusy:
            continue
        except StepFailed as failure:
            say(f"  ! {folder.name}, left by a killed run, could not be removed: {failure.message}")
