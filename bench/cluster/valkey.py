"""The nodes of Valkey Cluster as members that are kept up."""

from dataclasses import dataclass
from functools import cached_property

from compliance.localdev.servers.redis_cluster import RedisCluster


@dataclass
class ValkeyNode:
    """One node; whether it is a primary changes."""

    cluster: RedisCluster
    number: int

    @cached_property
    def name(self) -> str:
        return f"valkey-{self.number}"

    def is_alive(self) -> bool:
        return self.cluster.nodes[self.number].running() is not None

    def start(self) -> None:
        self.cluster.nodes[self.number].start()

    def kill(self) -> None:
        self.cluster.kill(self.number)

    def is_primary(self) -> bool:
        node = self.cluster.nodes[self.number]
        return self.is_alive() and "role:master" in node.facts("INFO", "replication")
