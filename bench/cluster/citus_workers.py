"""Two workers of Citus beside the cluster's nodes, which Patroni keeps and which are then the coordinator."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg

from compliance.localdev.servers.citus import SETTINGS, CitusCluster
from compliance.localdev.servers.databases import Addressed
from compliance.localdev.servers.postgres import DatabaseRole
from compliance.localdev.servers.servers import Servers
from compliance.localdev.state import write_private


@dataclass(frozen=True)
class CitusWorkers:
    """Workers under `folder`; `password` is the superuser's on every node, the coordinator's included."""

    servers: Servers
    folder: Path
    install: Path
    password: str

    @cached_property
    def _cluster(self) -> CitusCluster:
        auditor = DatabaseRole(self.servers.auditor(), self.servers.secrets["postgres_reader_password"])
        roles = [*(self.servers.role(kind) for kind in ("owner", "service", "reader")), auditor]
        return CitusCluster(self.folder / "citus", self.install, self.password, roles)

    @property
    def programs(self) -> Path:
        """The folder of PostgreSQL's programs with Citus, for the coordinator, too."""
        return self._cluster.programs

    @property
    def parameters(self) -> dict[str, Any]:
        """What the coordinator's nodes need besides their own parameters."""
        return {name: value for name, value in SETTINGS.items() if name != "shared_buffers"}

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the coordinator's nodes, by which they sign in to the workers."""
        return {"PGPASSFILE": str(self.folder / "citus-passwords"), **self._cluster.libraries}

    def lay(self) -> None:
        """Install the programs. Raises StepFailed."""
        self._cluster.lay()
        # The coordinator runs as whoever owns the cluster's folder, workers of root's as somebody else.
        write_private(Path(self.variables["PGPASSFILE"]), self._cluster.passwords())

    def start(self) -> None:
        """Start the workers, with the service's roles."""
        self._cluster.start_nodes(self._cluster.worker_nodes)
        auditor = self._cluster.roles[-1]
        for node in self._cluster.worker_nodes:
            self.servers.make_roles(node)
            with psycopg.connect(node.url("postgres"), autocommit=True) as connection:
                connection.execute(f"ALTER ROLE {auditor.name} LOGIN PASSWORD '{auditor.password}'")

    def stop(self) -> None:
        self._cluster.stop()

    def make_database(self, name: str, *, coordinator: Addressed, port: int) -> None:
        """Make a database on all nodes; the workers reach the coordinator's primary at that port."""
        owner = self.servers.role("owner")
        self._cluster.make_database(name, owner=owner, coordinator=coordinator, port=port)
