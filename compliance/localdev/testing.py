"""`./test`: databases, tokens and a Valkey of its own for each run, then pytest, then all is gone again.

The whole suite is shared between as many runs as there are processors, up to `MOST_SHARES`.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from .compilation import Compilation
from .console import StepFailed, say, step
from .databases import drop_databases
from .environment import application, has_own_tokens, merged
from .layout import Layout
from .processes import run_foreground
from .redis import RedisServer
from .servers import Servers, in_use
from .softhsm import SoftHsm
from .state import LockBusy, locked

MOST_SHARES = 2
SHARE = "TEST_SHARE"
"""Which share of the suite a run takes, as `1/2`; the root's `conftest.py` reads it."""
STOP_SECONDS = 20.0


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
        return self.servers.tokens_in(self.folder / "softhsm", shards=2)

    def start(self) -> None:
        """Make the run's own parts."""
        with step("Valkey and SoftHSM tokens of this run"):
            self.redis.start()
            if not has_own_tokens(os.environ):
                self.softhsm.ensure()

    def environment(self) -> dict[str, str]:
        """The contract over this run's parts; Django itself puts `test_` before the databases' names."""
        live, test = self.servers.database_urls()
        owners = {name: with_suffix(url, self.name) for name, url in self.servers.operator_contract().items()}
        contract = {
            **application(self.servers.secrets, base_url=self.servers.base_url()),
            **self.softhsm.environment(),
            "DATABASE_URL": with_suffix(live, self.name),
            "TEST_DATABASE_URL": with_suffix(test, self.name),
            "DATABASE_READER": self.servers.reader.name,
            **owners,
            "REDIS_URL": self.redis.url(),
        }
        layout = self.servers.layout
        return merged(contract, os.environ, root=layout.root, cache=layout.local / "pycache")

    def clear(self) -> None:
        """Remove whatever the run left: its server, databases and files."""
        self.redis.stop()
        drop_databases(self.servers.owner_urls()[0], self.name)
        shutil.rmtree(self.folder, ignore_errors=True)


def run_tests(layout: Layout, arguments: list[str]) -> int:
    """Run pytest with `arguments`, or the whole suite; its exit code."""
    servers = Servers(layout)
    alone = bool(arguments) or has_own_tokens(os.environ)
    shares = 1 if alone else min(os.cpu_count() or 1, MOST_SHARES)
    command = [sys.executable, "-m", "pytest", *arguments]
    with Compilation(layout) as compilation, in_use(servers, start=servers.start_postgres):
        _clear_dead_runs(servers)
        with ExitStack() as stack:
            runs = [stack.enter_context(_own_run(servers)) for _ in range(shares)]
            compilation.wait()
            if shares == 1:
                return run_foreground(command, cwd=layout.root, env=runs[0].environment())
            return _run_shares(runs, command, cwd=layout.root)


def _run_shares(runs: Sequence[TestRun], command: Sequence[str], *, cwd: Path) -> int:
    """Run them side by side, the first on our terminal; the others' words follow. The first bad exit code."""
    with ExitStack() as stack:
        children = []
        for number, run in enumerate(runs, 1):
            output = None if number == 1 else stack.enter_context((run.folder / "output").open("wb"))
            environment = {**run.environment(), SHARE: f"{number}/{len(runs)}"}
            children.append(subprocess.Popen(command, cwd=cwd, env=environment, stdout=output, stderr=output))
        try:
            codes = [child.wait() for child in children]
        except KeyboardInterrupt:
            _stop(children)
            raise
    for number, run in enumerate(runs[1:], 2):
        say(f"\n  … share {number} of {len(runs)}, which ran beside it")
        sys.stdout.write((run.folder / "output").read_text(errors="replace"))
        sys.stdout.flush()
    return next((code if code > 0 else 128 - code for code in codes if code != 0), 0)


def _stop(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Let them clean up, for a while."""
    for child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
    for child in children:
        try:
            child.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()


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
