"""The servers of a run: a Citus cluster, one plain PostgreSQL of the same programs, and a Valkey."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg

from bench.harness import machine
from bench.harness.command import manage
from bench.harness.servers import clean
from compliance.localdev.console import step
from compliance.localdev.environment import service_name
from compliance.localdev.servers.citus import SETTINGS, CitusCluster
from compliance.localdev.servers.databases import ensure_database
from compliance.localdev.servers.postgres import PostgresServer
from compliance.localdev.servers.redis import RedisServer
from compliance.localdev.servers.servers import Servers

PLAIN, CITUS = "plain", "Citus"
KINDS = (PLAIN, CITUS)
DATABASE = "bench_live"


@dataclass(frozen=True)
class Ground:
    """Both kinds of database under `folder`, on ports of their own; `servers` are the checkout's.

    `shards`: into how many the tenants are divided.
    """

    servers: Servers
    folder: Path
    install: Path
    shards: int

    # --- What it consists of -------------------------------------------------------------------------

    @cached_property
    def cluster(self) -> CitusCluster:
        password = self.servers.secrets["postgres_password"]
        return CitusCluster(self.folder / "citus", self.install, password, self.servers.citus_roles())

    @cached_property
    def plain(self) -> PostgresServer:
        first, home = self.cluster.coordinator, self.cluster.home
        return PostgresServer(
            self.folder / "plain",
            outside=home / "outside-plain",
            ports=self.folder / "plain-ports.json",
            log=self.folder / "plain.log",
            password=first.password,
            programs=first.programs,
            more={name: SETTINGS[name] for name in ("shared_buffers", "max_connections")},
        )

    @cached_property
    def redis(self) -> RedisServer:
        password = self.servers.secrets["redis_password"]
        return RedisServer(self.folder / "redis", self.folder / "ports.json", password, snapshots=False)

    def nodes(self, kind: str) -> tuple[PostgresServer, ...]:
        """Return the servers behind a kind; the service connects to the first."""
        return (self.plain,) if kind == PLAIN else self.cluster.nodes

    def url(self, kind: str, role: str = "") -> str:
        """Return the address of a kind's database; without a role as the superuser."""
        return self.nodes(kind)[0].url(DATABASE, self.servers.role(role) if role else None)

    def url_at(self, port: int, role: str) -> str:
        """Return the address of the database at the node of that port."""
        found = next(node for node in self.cluster.nodes if node.port() == port)
        return found.url(DATABASE, self.servers.role(role))

    def environment(self, kind: str, *, operator: bool = False) -> dict[str, str]:
        """Return the environment of a process of the service; both environments share one database."""
        kept = {name: value for name, value in clean(os.environ).items() if "DATABASE" not in name}
        urls = {"DATABASE_URL": "service", **({"DATABASE_OWNER_URL": "owner"} if operator else {})}
        found = {
            **kept,
            "BROKER_URL": self.redis.url(),
            "REDIS_URL": self.redis.url(),
            "DATABASE_AUDITOR": self.servers.auditor(),
            "DATABASE_READER": self.servers.role("reader").name,
            "DATABASE_CITUS": str(kind == CITUS).lower(),
            "LOG_LEVEL": "ERROR",
            "SERVICE_NAME": service_name(os.environ),
        }
        for variable, role in urls.items():
            found |= {variable: self.url(kind, role), f"TEST_{variable}": self.url(kind, role)}
        return found

    # --- Starting and stopping -----------------------------------------------------------------------

    @contextmanager
    def started(self) -> Iterator[None]:
        """Run the servers, with migrated databases, inside the block; remove all of it afterwards."""
        self.clear()
        self.folder.mkdir(mode=0o711, parents=True)
        try:
            with step("a Citus cluster, a plain PostgreSQL and a Valkey"):
                self._start()
            for kind in KINDS:
                with step(f"schema, {kind}"):
                    self.manage(kind, "migrate", "--verbosity", "0")
                    if kind == CITUS:
                        self.manage(kind, "distribute", "--verbosity", "0")
                    self.manage(kind, "partition_maintain", "--environment", "live", accepted=(0, 6))
            yield
        finally:
            self.clear()

    def clear(self) -> None:
        """Stop the servers and remove their data."""
        self.plain.stop()
        self.redis.stop()
        self.cluster.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        cluster, owner = self.cluster, self.servers.role("owner")
        cluster.start()
        if os.geteuid() == 0:
            self.plain.outside.mkdir(mode=0o755, exist_ok=True)
        self.plain.start()
        self.redis.start()
        self.servers.make_roles(self.plain)
        for node in cluster.nodes:
            self.servers.make_roles_of_node(node)
        ensure_database(self.plain, DATABASE, owner=owner)
        cluster.make_database(DATABASE, owner=owner)
        with self.connected(CITUS) as connection:
            connection.execute(f"ALTER DATABASE {DATABASE} SET citus.shard_count = {self.shards}")

    # --- What it is asked ----------------------------------------------------------------------------

    def connected(self, kind: str) -> "psycopg.Connection[tuple[Any, ...]]":
        """Connect as the superuser, which nobody's time-outs bind."""
        return psycopg.connect(self.url(kind), autocommit=True)

    def processor_seconds(self, kind: str) -> float:
        """Return the processor time of all processes of a kind's servers that still run."""
        return sum(machine.run_seconds(pid) for root in self.roots(kind) for pid in machine.descendants(root))

    def roots(self, kind: str) -> list[int]:
        """Return the first processes of a kind's servers."""
        found = (node.running() for node in self.nodes(kind))
        return [one.pid for one in found if one is not None]

    def manage(self, kind: str, *arguments: str, accepted: Sequence[int] = (0,)) -> None:
        """Run a command of the service as its operator. Raises StepFailed."""
        manage(
            self.servers.layout.root,
            self.environment(kind, operator=True),
            arguments,
            accepted=accepted,
            hint="read the messages",
        )
