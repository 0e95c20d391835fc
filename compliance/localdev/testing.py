"""`./test`: run pytest over databases, tokens and a Valkey of its own, and remove them.

The whole suite is shared between runs, one more than there are processors, up to `MOST_RUNS`: tests also
wait for processes, sockets and disks. Each run claims the next file that no other has claimed.
"""

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from .console import StepFailed, say, step
from .environment import has_own_tokens, merged
from .layout import Layout
from .servers.citus import BUILD, CitusCluster, citus_build
from .servers.databases import drop_databases, set_defaults
from .servers.pgbouncer import PgBouncer, keeps_prepared_statements, pgbouncer_program
from .servers.processes import run_foreground, wait_for
from .servers.redis import RedisServer
from .servers.redis_cluster import RedisCluster
from .servers.servers import Servers, in_use
from .servers.softhsm import SoftHsm
from .setup.compilation import compile_scorer
from .state import LockBusy, locked

MOST_RUNS = 3
CLAIMS = "TEST_CLAIMS"
"""The variable that names the folder where each run of the suite leaves a file for what it has taken."""
TEST_REDIS = "TEST_REDIS"
"""The variable that chooses what stands behind REDIS_URL: `cluster`, or one server."""
TEST_POOLER = "TEST_POOLER"
"""The variable that puts `pgbouncer` in front of both databases."""
TEST_DATABASE = "TEST_DATABASE"
"""The variable that puts `citus` behind DATABASE_URL, or one server; `conftest.py` reads it."""
SESSION = {
    "statement_timeout": "30000",
    "lock_timeout": "10000",
    "TimeZone": "UTC",
    "plan_cache_mode": "force_generic_plan",
}
"""The defaults of the service's role behind a pooler: DATABASE_SESSION of the service's settings."""
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
    def cluster(self) -> RedisCluster | None:
        """The cluster behind REDIS_URL, if one is asked for; `redis` is then the broker alone."""
        if os.environ.get(TEST_REDIS, "") != "cluster":
            return None
        return RedisCluster(self.folder / "cluster", self.servers.secrets["redis_password"])

    @property
    def pooler(self) -> PgBouncer | None:
        """The pooler behind DATABASE_URL, if one is asked for."""
        if os.environ.get(TEST_POOLER, "") != "pgbouncer" or self.servers.given.database is not None:
            return None
        roles, port = [self.servers.role("service")], self.servers.postgres.port()
        return PgBouncer(self.folder / "pgbouncer", self.folder / "ports.json", port, roles, size=40)

    @property
    def citus(self) -> CitusCluster | None:
        """The nodes behind DATABASE_URL, if they are asked for."""
        install = citus_build() if on_citus() else None
        return None if install is None else self._citus(install)

    def _citus(self, install: Path) -> CitusCluster:
        password = self.servers.secrets["postgres_password"]
        return CitusCluster(self.folder / "citus", install, password, self.servers.citus_roles())

    def start(self) -> None:
        self.redis.start()
        if self.cluster is not None:
            self.cluster.start()
        if self.citus is not None:
            self._start_citus(self.citus)
        if self.pooler is not None:
            set_defaults(self.servers.postgres, self.servers.role("service"), SESSION)
            self.pooler.start()

    def _start_citus(self, citus: CitusCluster) -> None:
        citus.start()
        for node in citus.nodes:
            self.servers.make_roles_of_node(node)
        for name in self.servers.database_names():
            # Django takes a database of this name for its own.
            citus.make_database(f"test_{name}_{self.name}", owner=self.servers.role("owner"))

    @property
    def softhsm(self) -> SoftHsm:
        return self.servers.tokens_in(self.folder / "softhsm", shards=2)

    def environment(self) -> dict[str, str]:
        """Return the environment of pytest; Django itself prefixes the databases' names with `test_`."""
        contract = self.servers.contract() | self.servers.operator_contract() | self.softhsm.environment()
        names = [name for name in contract if "DATABASE" in name and name.endswith("_URL")]
        contract |= {name: with_suffix(contract[name], self.name) for name in names}
        if self.citus is not None:
            port = self.citus.coordinator.port()
            contract |= {name: with_port(contract[name], port) for name in names}
            contract["DATABASE_CITUS"] = "true"
        layout = self.servers.layout
        broker = self.redis.url()
        url = broker if self.cluster is None else self.cluster.url()
        own = contract | {"REDIS_URL": url, "BROKER_URL": broker, "EVENT_ARCHIVE_DIR": str(self.archive)}
        own |= {"CRL_SHARDS": CRL_SHARDS, "REDIS_TIMEOUT_SECONDS": REDIS_SECONDS}
        own |= self._pooled(contract)
        return merged(own, os.environ, root=layout.root, cache=layout.local / "pycache")

    def _pooled(self, contract: dict[str, str]) -> dict[str, str]:
        if self.pooler is None:
            return {}
        prepares = keeps_prepared_statements(pgbouncer_program() or Path("pgbouncer"))
        found = {"DATABASE_PREPARED_STATEMENTS": str(prepares).lower()}
        for name in ("DATABASE", "TEST_DATABASE"):
            url = contract[f"{name}_URL"]
            found |= {f"{name}_URL": self.pooler.url(url), f"{name}_DIRECT_URL": url}
        return found

    def clear(self) -> None:
        self.redis.stop()
        RedisCluster(self.folder / "cluster", "").stop()
        PgBouncer(self.folder / "pgbouncer", self.folder / "ports.json", 0, []).stop()
        self._citus(Path("install")).clear()
        drop_databases(self.servers.owner_urls()[0], self.name)
        shutil.rmtree(self.folder, ignore_errors=True)


def run_tests(layout: Layout, arguments: list[str]) -> int:
    """Run pytest with `arguments`, or the whole suite; return its exit code."""
    if on_citus() and citus_build() is None:
        say(f"  … skipped: {BUILD} names no build of Citus, which {TEST_DATABASE}=citus asks for")
        return 0
    servers = Servers(layout)
    alone = bool(arguments) or has_own_tokens(os.environ)
    count = 1 if alone else min((os.cpu_count() or 1) + 1, MOST_RUNS)
    command = [sys.executable, "-m", "pytest", *arguments]
    compile_scorer(layout)
    with in_use(servers, start=servers.start_postgres):
        _clear_dead_runs(servers)
        with ExitStack() as stack:
            runs = [stack.enter_context(_own_run(servers)) for _ in range(count)]
            if count == 1:
                return run_foreground(command, cwd=layout.root, env=runs[0].environment())
            return _run_together(runs, command, cwd=layout.root)


def _run_together(runs: Sequence[TestRun], command: Sequence[str], *, cwd: Path) -> int:
    """Run the suite by all runs at once, and print their output in turn; return the first bad exit code."""
    claims = runs[0].folder / "claims"
    claims.mkdir()
    # None of them runs all that it collects: a percentage would mislead.
    command = [*command, "-o", "console_output_style=classic"]
    with ExitStack() as stack:
        children = []
        for number, run in enumerate(runs, 1):
            output = None if number == 1 else stack.enter_context((run.folder / "output").open("wb"))
            environment = {**run.environment(), CLAIMS: str(claims)}
            children.append(subprocess.Popen(command, cwd=cwd, env=environment, stdout=output, stderr=output))
        codes = wait_for(children)
    for number, run in enumerate(runs[1:], 2):
        say(f"\n  … run {number} of {len(runs)}, beside it")
        sys.stdout.write((run.folder / "output").read_text(errors="replace"))
        sys.stdout.flush()
    return next(filter(None, codes), 0)


def with_suffix(url: str, suffix: str) -> str:
    """Add `_suffix` to the name of the database at `url`."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path}_{suffix}"))


def with_port(url: str, port: int) -> str:
    """Put another port into the address of a database."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{port}"))


def on_citus() -> bool:
    return os.environ.get(TEST_DATABASE, "") == "citus"


@contextmanager
def _own_run(servers: Servers) -> Iterator[TestRun]:
    run = TestRun(servers, f"r{secrets.token_hex(5)}")
    run.archive.mkdir(mode=0o700, parents=True)
    with locked(run.folder / "lock"):
        try:
            with step("Valkey and SoftHSM tokens of this run"):
                run.start()
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
        except LockBusy:
            continue
        except StepFailed as failure:
            say(f"  ! {folder.name}, left by a killed run, could not be removed: {failure.message}")
