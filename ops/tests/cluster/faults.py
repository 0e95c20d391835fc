"""What is broken, and how: each fault is struck once and, where it lasts, taken back."""

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ops.tests.cluster.members import Program
from ops.tests.cluster.programs import fake_clock
from ops.tests.cluster.topology import Cluster

PRIMARY_SECONDS = 15.0
OTHER_SECONDS = 5.0
NOTHING_FOUND = "NOTHING FOUND"
LASTING_SECONDS = 12.0
"""How long a fault lasts that is taken back."""


@dataclass(frozen=True)
class Fault:
    """One fault; `strike` returns what it hit, None if there was nothing to hit; `heal` takes it back.

    `limit` is how long, in seconds, no kind of request may go unanswered.
    """

    name: str
    strike: Callable[[], str | None]
    limit: float = OTHER_SECONDS
    heal: Callable[[], None] | None = None


@dataclass(frozen=True)
class Struck:
    """A fault that happened, or found nothing to hit; times of the monotonic clock."""

    fault: Fault
    hit: str | None
    began: float
    until: float


class Faults:
    """The faults of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._clock = fake_clock()
        self._usual: dict[str, str] = {}
        self._between: tuple[str, str] | None = None

    def nothing(self) -> Fault:
        """Return the peer of all faults: how long each kind of request waits without one."""
        return Fault("nothing", lambda: "the cluster is whole", limit=math.inf)

    def kills(self) -> list[Fault]:
        """Return the kills, one of each kind."""
        return [
            Fault("kill the PostgreSQL primary", self._kill_primary, limit=PRIMARY_SECONDS),
            Fault("kill the etcd leader", self._kill_etcd_leader),
            Fault("kill Valkey", lambda: self._kill("valkey")),
            Fault("kill a web node", lambda: self._kill(random.choice(self._cluster.webs).name)),
            Fault("kill a worker", lambda: self._kill_one_of("worker")),
            Fault("kill a webhook sender", lambda: self._kill_one_of("sender")),
            Fault("kill a signal sender", lambda: self._kill_one_of("signals")),
            Fault("kill a key host", lambda: self._kill_one_of("key-host")),
            Fault("kill a beat", lambda: self._kill_one_of("beat")),
        ]

    def all_of(self, rounds: int) -> list[Fault]:
        """Return so many rounds of kills, and the faults that last where this machine allows them."""
        return [*(self.kills() * rounds), *self._lasting()]

    def missing(self) -> list[str]:
        """Return what this machine does not allow, in words."""
        found = []
        if self._cluster.log_disk is None:
            found.append("a full log disk (needs root, ip and unshare)")
        if self._clock is None:
            found.append("a wrong clock (needs libfaketime)")
        if not self._cluster.network.can_cut:
            found.append("a cut between two nodes (needs root, ip and unshare)")
        return found

    def _lasting(self) -> Iterator[Fault]:
        disk = self._cluster.log_disk
        if disk is not None:
            yield Fault("full log disk", disk.fill, heal=disk.empty)
        if self._clock is not None:
            yield Fault("a web node's clock a minute ahead", self._move_clock, heal=self._restore_clock)
        if self._cluster.network.can_cut:
            yield Fault("primary cut off from its standby", self._cut, heal=self._mend)

    def _move_clock(self) -> str:
        web = self._web(0)
        ahead = {"LD_PRELOAD": str(self._clock), "FAKETIME": "+60s", "DONT_FAKE_MONOTONIC": "1"}
        self._usual, web.environment = web.environment, web.environment | ahead
        web.kill()
        return web.name

    def _restore_clock(self) -> None:
        web = self._web(0)
        web.environment = self._usual
        web.kill()

    def _web(self, number: int) -> Program:
        found = self._cluster.member(self._cluster.webs[number].name)
        assert isinstance(found, Program)
        return found

    def _cut(self) -> str | None:
        self._between = None
        primary, standbys = self._cluster.primary(), self._cluster.synchronous_standbys()
        if primary is None or not standbys:
            return None
        self._between = (primary, standbys[0])
        self._cluster.network.cut(*self._between)
        return " and ".join(self._between)

    def _mend(self) -> None:
        if self._between is not None:
            self._cluster.network.mend(*self._between)

    def _kill(self, name: str) -> str:
        self._cluster.member(name).kill()
        return name

    def _kill_one_of(self, part: str) -> str:
        return self._kill(f"{part}-{random.choice((1, 2))}")

    def _kill_primary(self) -> str | None:
        primary = self._cluster.primary()
        return self._kill(f"patroni-{primary}") if primary else None

    def _kill_etcd_leader(self) -> str | None:
        leader = self._cluster.etcd_leader()
        return self._kill(f"etcd-{leader}") if leader else None


def strike_all(faults: list[Fault], *, every: float, told: Callable[[str], None]) -> list[Struck]:
    """Strike one fault after the other, `every` so many seconds, and take back those that last."""
    found = []
    for fault in faults:
        began = time.monotonic()
        hit = fault.strike()
        told(f"{fault.name}: {hit or NOTHING_FOUND}")
        if fault.heal is not None:
            time.sleep(min(LASTING_SECONDS, every / 2))
            fault.heal()
        time.sleep(max(0.0, began + every - time.monotonic()))
        found.append(Struck(fault, hit, began, time.monotonic()))
    return found
