"""Where a benchmark runs: databases, tokens and a Redis namespace of its own beside the developer's.

Certifying a thousand agents takes minutes, so they are made once: the databases that hold them are kept, and
each run works in copies of those, which are dropped when it ends.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import redis
from psycopg import sql

from bench.harness.command import manage
from compliance.localdev.console import StepFailed, say, step
from compliance.localdev.environment import service_name
from compliance.localdev.layout import Layout
from compliance.localdev.servers.servers import Servers
from compliance.localdev.servers.softhsm import SoftHsm
from compliance.localdev.state import locked, read_json, write_json

# Limits are not what is measured: none is met.
LIMITS = (
    *("RATE_LIMIT_EVENTS", "RATE_LIMIT_KEY", "RATE_LIMIT_PUBLIC", "RATE_LIMIT_UNAUTHENTICATED"),
    "RATE_LIMIT_GATEWAY",
    "RATE_LIMIT_VERIFY",
)
NO_LIMIT = dict.fromkeys(LIMITS, "100000000")


@dataclass(frozen=True)
class Place:
    """One checkout's benchmark ground."""

    servers: Servers

    @property
    def folder(self) -> Path:
        return self.servers.layout.bench

    @property
    def state(self) -> Path:
        """The agents, and the schema that the kept databases have."""
        return self.folder / "agents.json"

    @property
    def demo(self) -> Path:
        """The tenant and its keys."""
        return self.folder / "tenant.json"

    @property
    def name(self) -> str:
        """Names its databases' and its keys' namespace in Redis."""
        return service_name(os.environ)

    @cached_property
    def tokens(self) -> SoftHsm | None:
        """Tokens of its own; None where the caller brings an HSM, whose tokens are then used."""
        if os.environ.get("SOFTHSM2_CONF") != str(self.servers.softhsm.conf):
            return None
        return self.servers.tokens_in(self.folder / "softhsm")

    def url(self, database: str) -> str:
        """A database on the stack's server, as its owner: what the benchmarks themselves do."""
        return _at(self.servers.database_urls("owner")[0], database)

    def service_url(self, database: str) -> str:
        """The same as the service."""
        return _at(self.servers.database_urls()[0], database)

    def databases(self, kind: str) -> tuple[str, str]:
        """The live and the test database: `bench` for the run's, `agents` for the kept ones."""
        return f"{self.name}_{kind}_live", f"{self.name}_{kind}_test"

    @property
    def live_url(self) -> str:
        """The run's live database, as its owner."""
        return self.url(self.databases("bench")[0])

    def environment(self, kind: str = "bench") -> dict[str, str]:
        """The environment of a process of the service that works in the benchmark's databases."""
        live, test = self.databases(kind)
        own = {} if self.tokens is None else self.tokens.environment()
        return {
            **os.environ, **own, **NO_LIMIT, "SERVICE_NAME": f"{self.name}bench",
            "DATABASE_URL": self.service_url(live), "TEST_DATABASE_URL": self.service_url(test),
            "DATABASE_OWNER_URL": self.url(live), "TEST_DATABASE_OWNER_URL": self.url(test),
        }  # fmt: skip

    @property
    def api_key(self) -> str:
        return str(read_json(self.demo)["live_api_key"])

    @property
    def tenant_id(self) -> str:
        return str(read_json(self.demo)["tenant_id"])

    def agents(self, count: int) -> list[str]:
        return [str(agent) for agent in read_json(self.state)["agents"][:count]]

    @contextmanager
    def prepared(self, agents: int, *, fresh: bool = False) -> Iterator[None]:
        """Databases with so many certified agents inside the block; dropped afterwards."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        try:
            with locked(self.folder / "lock", wait=False):
                known = self._ensure_tokens(fresh=fresh)
                self._ensure_agents(known, agents)
                with step("databases of this run"):
                    self._copy_databases()
                    # 6: something was left for the next time.
                    self.manage("partition_maintain", "--environment", "live", kind="bench", accepted=(0, 6))
                try:
                    yield
                finally:
                    self._clear()
        except BlockingIOError as busy:
            raise StepFailed("another benchmark runs here", hint="wait for it to end") from busy

    def _ensure_tokens(self, *, fresh: bool) -> dict[str, Any]:
        """What is known of the kept agents; none, and nothing kept, where they are of no use any more."""
        known = read_json(self.state)
        if fresh or not self._usable(known, schema_of(self.servers.layout.root)):
            self._start_anew()
            known = {"agents": []}
        if self.tokens is not None:
            self.tokens.ensure()
        return known

    def _ensure_agents(self, known: dict[str, Any], count: int) -> None:
        schema = schema_of(self.servers.layout.root)
        if known.get("schema") != schema:
            with step("schema, CAs and a tenant for the agents"):
                self.manage("bootstrap_dev", "--migrate", "--state", str(self.demo))
            known["schema"] = schema
            write_json(self.state, known)
        missing = count - len(known["agents"])
        if missing > 0:
            try:
                with step(f"{missing} certified agents"):
                    for agent in self._made_agents(missing):
                        known["agents"].append(agent)
            finally:
                write_json(self.state, known)

    def _usable(self, known: Mapping[str, object], schema: Mapping[str, str]) -> bool:
        """Whether the kept databases are there and lack at most the migrations that are new."""
        before = known.get("schema")
        if not isinstance(before, dict) or not before.items() <= schema.items():
            return False
        with self._admin() as connection:
            names = [row[0] for row in connection.execute("SELECT datname FROM pg_database")]
        return set(self.databases("agents")) <= set(names)

    def _start_anew(self) -> None:
        for path in (self.state, self.demo):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.folder / "softhsm", ignore_errors=True)
        self._drop("agents")
        with self._admin() as connection:
            for name in self.databases("agents"):
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def _made_agents(self, count: int) -> Iterator[str]:
        """Register and certify, a key being generated for each agent."""
        command = [sys.executable, "-m", "bench.harness.agents", self.tenant_id, str(count)]
        environment = self.environment("agents") | {"LOG_LEVEL": "WARNING"}
        root = self.servers.layout.root
        made = 0
        with subprocess.Popen(command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True) as maker:
            for made, line in enumerate(maker.stdout or (), 1):
                yield line.strip()
                if made % 50 == 0:
                    say(f"  … {made} of {count}")
        if made < count or maker.returncode:
            raise StepFailed(f"only {made} of {count} agents were certified", hint="read the messages above")

    def _copy_databases(self) -> None:
        self._drop("bench")
        with self._admin() as connection:
            for name, original in zip(self.databases("bench"), self.databases("agents"), strict=True):
                form = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
                connection.execute(form.format(sql.Identifier(name), sql.Identifier(original)))

    def _drop(self, kind: str) -> None:
        with self._admin() as connection:
            for name in self.databases(kind):
                form = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
                connection.execute(form.format(sql.Identifier(name)))

    def _clear(self) -> None:
        self._drop("bench")
        client = redis.Redis.from_url(os.environ["REDIS_URL"])
        for key in client.scan_iter(f"{self.name}bench:*", count=1_000):
            client.delete(key)

    def _admin(self) -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(self.url("postgres"), autocommit=True)

    def manage(self, *arguments: str, kind: str = "agents", accepted: tuple[int, ...] = (0,)) -> None:
        """Run a command of the service in the run's databases (`bench`) or in the kept ones."""
        manage(
            self.servers.layout.root, self.environment(kind), arguments, accepted=accepted,
            hint="try `--fresh`",
        )  # fmt: skip


def _at(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def schema_of(root: Path) -> dict[str, str]:
    """Each migration and what is in it: a changed one can't be applied to a database that had the old."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        for path in sorted(root.glob("*/**/migrations/0*.py"))
        if ".venv" not in path.parts and ".local" not in path.parts
    }


def find_place() -> Place:
    """The benchmark ground of this checkout."""
    return Place(Servers(Layout()))
