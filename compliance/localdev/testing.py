"""`./test`: run pytest over databases, tokens and a Valkey of its own, and remove them.

pytest-xdist shares the whole suite, or the matrix, between workers, one more than there are processors, up to
`MOST_WORKERS`: tests also wait for processes, sockets and disks. Each worker has a run of its own.
"""

import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from .console import StepFailed, say, step
from .environment import has_own_tokens, merged
from .layout import Layout
from .servers.databases import drop_databases
from .servers.processes import run_foreground
from .servers.redis import RedisServer
from .servers.servers import Servers, in_use
from .servers.softhsm import SoftHsm
from .stack import compile_scorer
from .state import locked, write_json

MOST_WORKERS = 3
REDIS_SECONDS = "20"
"""More than the service's time-out: on a busy machine Valkey may stand still, which is no finding."""
CRL_SHARDS = "4"
"""Fewer than the service's default: a round of revocation lists signs one of each shard."""


@dataclass(frozen=True)
class TestRun:
    """One run of pytest; its unique `name` is part of its databases' names."""

    servers: Servers
    name: str

    @property
    def folder(self) -> Path:
        return self.servers.layout.local / "test" / self.name

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    @property
    def redis(self) -> RedisServer:
        password = self.servers.secrets["redis_password"]
        return RedisServer(self.folder / "redis", self.folder / "ports.json", password, snapshots=False)

    @property
    def softhsm(self) -> SoftHsm:
        return self.servers.tokens_in(self.folder / "softhsm", shards=2)

    def environment(self) -> dict[str, str]:
        """Return the environment of pytest; Django itself prefixes the databases' names with `test_`."""
        contract = self.servers.contract() | self.servers.operator_contract() | self.softhsm.environment()
        names = [name for name in contract if "DATABASE" in name and name.endswith("_URL")]
        contract |= {name: with_suffix(contract[name], self.name) for name in names}
        redis = self.redis.url()
        own = contract | {"REDIS_URL": redis, "BROKER_URL": redis, "EVENT_ARCHIVE_DIR": str(self.archive)}
        own["AUDIT_VERIFIED_FILE"] = ""  # each test's log is another
        own |= {"CRL_SHARDS": CRL_SHARDS, "REDIS_TIMEOUT_SECONDS": REDIS_SECONDS}
        return merged(own, os.environ, self.servers.layout)

    def clear(self) -> None:
        self.redis.stop()
        drop_databases(self.servers.database_urls("owner")[0], self.name)
        shutil.rmtree(self.folder, ignore_errors=True)


def run_tests(layout: Layout, arguments: list[str]) -> int:
    """Run pytest with `arguments`, or the whole suite; return its exit code."""
    servers = Servers(layout)
    alone = arguments not in ([], ["-m", "matrix"]) or has_own_tokens(os.environ)
    count = 1 if alone else min((os.cpu_count() or 1) + 1, MOST_WORKERS)
    command = [sys.executable, "-m", "pytest", *arguments]
    compile_scorer(layout, "--background")
    with in_use(servers, start=servers.start_postgres):
        _clear_dead_runs(servers)
        with ExitStack() as stack:
            runs = [stack.enter_context(_own_run(servers)) for _ in range(count)]
            environment = runs[0].environment()
            if count > 1:
                # Tests that commit for real come last in every worker: the order stays as collected.
                command += [f"-n{count}", "--dist=loadgroup", "--no-loadscope-reorder"]
                environment |= _of_workers(runs)
            return run_foreground(command, cwd=layout.root, env=environment)


def _of_workers(runs: Sequence[TestRun]) -> dict[str, str]:
    """Return the variables by which each worker of pytest-xdist finds the environment of its run."""
    folder = runs[0].folder / "workers"
    folder.mkdir(mode=0o700)
    for number, run in enumerate(runs):
        write_json(folder / f"gw{number}.json", run.environment())
    return {"PYTEST_PLUGINS": "compliance.localdev.worker", "TEST_WORKERS": str(folder)}


def with_suffix(url: str, suffix: str) -> str:
    """Add `_suffix` to the name of the database at `url`."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path}_{suffix}"))


@contextmanager
def _own_run(servers: Servers) -> Iterator[TestRun]:
    run = TestRun(servers, f"r{secrets.token_hex(5)}")
    run.archive.mkdir(mode=0o700, parents=True)
    with locked(run.folder / "lock"):
        try:
            with step("Valkey and SoftHSM tokens of this run"):
                run.redis.start()
                if not has_own_tokens(os.environ):
                    run.softhsm.ensure()
            yield run
        finally:
            run.clear()


def _clear_dead_runs(servers: Servers) -> None:
    for folder in sorted(servers.layout.local.glob("test/r*")):
        try:
            with locked(folder / "lock", wait=False):
                TestRun(servers, folder.name).clear()
        except BlockingIOError:
            continue
        except StepFailed as failure:
            say(f"  ! {folder.name}, left by a killed run, could not be removed: {failure.message}")
