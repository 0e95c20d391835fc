"""Two Citus workers; the cluster's own nodes, under Patroni, are their coordinator."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from compliance.localdev.servers.citus import SETTINGS, CitusCluster
from compliance.localdev.servers.databases import Addressed
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
        return CitusCluster(self.folder / "citus", self.install, self.password, self.servers.citus_roles())

    @property
    def programs(self) -> Path:
        """The folder of PostgreSQL's programs with Citus, for the coordinator, too."""
        return self._cluster.programs

    @property
    def parameters(self) -> dict[str, Any]:
        """What the coordinator's nodes need besides their own parameters."""
        # Memory is not that of small test nodes.
        return {name: value for name, value in SETTINGS.items() if name != "shared_buffers"}

    @property
    def variables(self) -> dict[str, str]:
        """The environment of the coordinator's nodes, by which they sign in to the workers."""
        return {"PGPASSFILE": str(self.folder / "citus-passwords"), **self._cluster.libraries}

    def install_programs(self) -> None:
        """Install the programs. Raises StepFailed."""
        self._cluster.install_programs()
        # A file of the coordinator's own: as root, its user is not that of the workers.
        write_private(Path(self.variables["PGPASSFILE"]), self._cluster.passwords())

    def start(self) -> None:
        """Start the workers, with the service's roles."""
        self._cluster.start_nodes(self._cluster.worker_nodes)
        for worker in self._cluster.worker_nodes:
            self.servers.make_roles_of_node(worker)

    def stop(self) -> None:
        self._cluster.stop()

    def clear(self) -> None:
        """Stop the workers and remove what lies outside of `folder`."""
        self._cluster.clear()

    def make_database(self, name: str, *, coordinator: Addressed, port: int) -> None:
        """Make a database on all nodes; the workers reach the coordinator's primary at that port."""
        owner = self.servers.role("owner")
        self._cluster.make_database(name, owner=owner, coordinator=coordinator, port=port)
