"""A private Valkey Cluster on this machine: primaries that share the slots, each with replicas."""

import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from pathlib import Path

from ..console import StepFailed
from ..ports import HOST, private_port
from ..state import read_json
from . import processes
from .redis import RedisServer, quoted

SLOTS = 16384
FORMED_SECONDS = 60.0
KILL = ((signal.SIGKILL, 10.0),)


class CommandRefused(Exception):
    """A node answered a command with an error."""


@dataclass(frozen=True)
class ClusterNode(RedisServer):
    """A server with a second port for the other nodes, which suspect it after `timeout` milliseconds."""

    timeout: int = 2000

    def bus_port(self) -> int:
        """Return the second port of the running or the last server; 0 before the first start."""
        return int(read_json(self.ports).get("bus", 0))

    def options(self) -> dict[str, object]:
        return {
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-port": private_port(self.ports, "bus"),
            "cluster-node-timeout": self.timeout,
            "cluster-announce-ip": HOST,
            # While a primary is away the others serve their slots.
            "cluster-require-full-coverage": "no",
            # A replica takes over however far behind it is: PostgreSQL knows what it lacks.
            "cluster-replica-validity-factor": 0,
            "masterauth": quoted(self.password),
            "repl-diskless-sync-delay": 0,
        }

    def ask(self, *words: object) -> str:
        """Run a command here and return the answer as text. Raises: OSError, CommandRefused."""
        with socket.create_connection((HOST, self.port()), timeout=5) as connection:
            connection.sendall(_request("AUTH", self.password) + _request(*words))
            answers = connection.makefile("rb")
            _answer(answers)
            return _answer(answers)

    def facts(self, *words: object) -> list[str]:
        """Return the lines of INFO or of CLUSTER INFO; none while the node is away."""
        try:
            return self.ask(*words).split()
        except (OSError, CommandRefused):
            return []


@dataclass(frozen=True)
class RedisCluster:
    """A cluster over the data in `folder`, each primary with so many replicas.

    Nodes are numbered from 0: the primaries of the first start, then the replicas, in the same order.
    """

    folder: Path
    password: str
    primaries: int = 3
    replicas: int = 0

    @cached_property
    def nodes(self) -> tuple[ClusterNode, ...]:
        count = self.primaries * (1 + self.replicas)
        return tuple(
            ClusterNode(
                self.folder / f"node-{number}",
                self.folder / f"ports-{number}.json",
                self.password,
                snapshots=False,
            )
            for number in range(count)
        )

    def url(self) -> str:
        """Return the address for REDIS_URL, with all nodes."""
        nodes = ",".join(f"{HOST}:{node.port()}" for node in self.nodes)
        return f"redis+cluster://:{self.password}@{nodes}"

    def start(self) -> bool:
        """Start what is down and wait until all slots are served; return whether a node was started.

        Raises StepFailed.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        started = [node.start() for node in self.nodes]
        if any(started):
            self._form()
        return any(started)

    def stop(self) -> bool:
        """Stop all nodes; return whether one ran."""
        stopped = [node.stop() for node in self.nodes]
        return any(stopped)

    def kill(self, number: int) -> None:
        """End a node as a crash does."""
        process = self.nodes[number].running()
        if process is not None:
            processes.stop(process, steps=KILL)

    def primary_of(self, slot: int) -> int | None:
        """Return the number of the live node that serves a slot."""
        for number, node in enumerate(self.nodes):
            if "role:master" in node.facts("INFO", "replication") and _serves(node, slot):
                return number
        return None

    def is_whole(self) -> bool:
        """Whether each node knows all others and sees every slot served."""
        wanted = {"cluster_state:ok", f"cluster_slots_ok:{SLOTS}", f"cluster_known_nodes:{len(self.nodes)}"}
        return all(wanted <= set(node.facts("CLUSTER", "INFO")) for node in self.nodes)

    def _form(self) -> None:
        first = self.nodes[0]
        if "cluster_slots_assigned:0" in first.facts("CLUSTER", "INFO"):
            for number in range(self.primaries):
                low, high = (SLOTS * edge // self.primaries for edge in (number, number + 1))
                self.nodes[number].ask("CLUSTER", "ADDSLOTSRANGE", low, high - 1)
                self.nodes[number].ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            # Addresses may have changed since the last start.
            node.ask("CLUSTER", "MEET", HOST, first.port(), first.bus_port())
        self._wait("Valkey Cluster did not form", self.is_whole)
        for number in range(self.primaries, len(self.nodes)):
            self._follow(self.nodes[number], self.nodes[number % self.primaries])
        self._wait("not all nodes of Valkey Cluster know the replicas", self._is_followed)

    def _is_followed(self) -> bool:
        """Whether each node knows which others are replicas."""
        wanted = self.primaries * self.replicas
        # The flag of a node itself is `myself,slave`.
        return all(
            sum(word.endswith("slave") for word in node.facts("CLUSTER", "NODES")) == wanted
            for node in self.nodes
        )

    def _follow(self, node: ClusterNode, primary: ClusterNode) -> None:
        """Make a node that serves no slots the replica of a primary."""
        if "role:master" in node.facts("INFO", "replication") and not _ranges(node):
            node.ask("CLUSTER", "REPLICATE", primary.ask("CLUSTER", "MYID"))
        self._wait(
            "a node of Valkey Cluster did not follow its primary",
            lambda: bool({"role:master", "master_link_status:up"} & set(node.facts("INFO", "replication"))),
        )

    def _wait(self, failure: str, condition: Callable[[], bool]) -> None:
        if not processes.wait_until(condition, seconds=FORMED_SECONDS, pause=0.1):
            raise StepFailed(failure, hint=f"read {self.folder}/node-*/server.log")


def _serves(node: ClusterNode, slot: int) -> bool:
    return any(low <= slot <= high for low, high in _ranges(node))


def _ranges(node: ClusterNode) -> list[tuple[int, int]]:
    """Return the first and last slot of each range that a live node serves."""
    (own,) = (line.split() for line in node.ask("CLUSTER", "NODES").splitlines() if "myself" in line)
    edges = (words.partition("-") for words in own[8:] if not words.startswith("["))
    return [(int(low), int(high or low)) for low, _, high in edges]


def _request(*words: object) -> bytes:
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def _answer(answers: BufferedReader) -> str:
    """Read a status, a number or a text (RESP2)."""
    line = answers.readline().rstrip(b"\r\n").decode()
    if line.startswith("-"):
        raise CommandRefused(line[1:])
    if not line.startswith("$"):
        return line[1:]
    return answers.read(int(line[1:]) + 2)[:-2].decode()
