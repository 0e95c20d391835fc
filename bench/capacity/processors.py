"""Processor time of the service's parts, from /proc, and the write-ahead log that they wrote meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import psycopg

from bench.capacity.model import KEY_HOST, LOOP, MICRO, POSTGRES, SENDER, VALKEY, VIEWS, WORKER, Cost
from bench.harness import machine
from bench.harness.place import Place
from bench.harness.web import WebServer

WAL = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"


@dataclass(frozen=True)
class Reading:
    """Seconds of processor time by role since its processes began, and bytes of the log."""

    seconds: Mapping[str, float]
    wal: int


@dataclass(frozen=True)
class Meter:
    """Reads what the roles have used; `roots` are their processes.

    The processes that PostgreSQL, the worker and the sender started count as theirs, also those that ended.
    """

    roots: Mapping[str, Sequence[int]]
    connection: psycopg.Connection

    def cost_of(self, work: Callable[[], int]) -> Cost:
        """Do `work`; return the cost of one of the operations that it counts."""
        before = self.read()
        count = work()
        after = self.read()
        if not count:
            return Cost(dict.fromkeys(self.roots, float("nan")), float("nan"))
        spent = {
            role: max(0.0, seconds - before.seconds[role]) / count * MICRO
            for role, seconds in after.seconds.items()
        }
        return Cost(spent, (after.wal - before.wal) / count)

    def read(self) -> Reading:
        seconds = {role: sum(map(_seconds_of(role), pids)) for role, pids in self.roots.items()}
        (wal,) = self.connection.execute(WAL).fetchone() or (0,)
        return Reading(seconds, int(wal))


def roots_of(
    place: Place, server: WebServer, *, worker: int | None = None, sender: int | None = None
) -> dict[str, list[int]]:
    """Return the processes of each role; none of a server that runs elsewhere."""
    postgres, valkey = place.servers.postgres.running(), place.servers.redis.running()
    return {
        LOOP: server.workers(),
        VIEWS: server.views(),
        POSTGRES: [postgres.pid] if postgres else [],
        VALKEY: [valkey.pid] if valkey else [],
        KEY_HOST: place.key_hosts(),
        WORKER: [worker] if worker else [],
        SENDER: [sender] if sender else [],
    }


def _seconds_of(role: str) -> Callable[[int], float]:
    if role in (LOOP, VIEWS, KEY_HOST):
        return machine.worked_seconds
    return machine.family_spent_seconds
