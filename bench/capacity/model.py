"""What an installation needs, derived from what operations were measured to cost; pure arithmetic.

Costs come from `./run bench capacity`, or from a reader's own measurements in the same form.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import ceil, inf
from typing import Any

MICRO = 1e6
MEGA, GIGA, TERA = 1e6, 1e9, 1e12
DAY_SECONDS = 86_400
CERTIFICATE_DAYS = 365

EVENT, BATCHED, ARCHIVED = "event", "batched event", "event, archived"
SUMMED, POOLED, COLLECTED = "event, in daily sums", "event, in a baseline", "event, for the inbox"
LATER = (SUMMED, POOLED, COLLECTED)
"""What tasks do with each event afterwards; of each task one runs at a time."""
VERIFICATION, CERTIFICATE, KEY, DELIVERY = "verification", "certificate", "key", "delivery"
OPERATIONS = (EVENT, BATCHED, *LATER, ARCHIVED, VERIFICATION, CERTIFICATE, KEY, DELIVERY)
LOOP, VIEWS, POSTGRES, VALKEY, KEY_HOST = "web loop", "views", "PostgreSQL", "Valkey", "key host"
WORKER, SENDER = "worker", "sender"
ROLES = (LOOP, VIEWS, POSTGRES, VALKEY, KEY_HOST, WORKER, SENDER)

MEASURED, EXTRAPOLATED, ASSUMED = "measured", "extrapolated", "assumed"
FAST_PATH_CONNECTIONS = 21  # of a web worker to one environment's database
WORKER_THREADS = 16
TASK_SHARE = 45 / 60  # of the time in which such a task may work
ENVIRONMENTS = 2


@dataclass(frozen=True)
class Cost:
    """Processor time of one operation by role, in microseconds, and the write-ahead log in bytes."""

    processor_us: Mapping[str, float]
    wal_bytes: float = 0.0

    @property
    def total_us(self) -> float:
        return sum(self.processor_us.values())


@dataclass(frozen=True)
class Costs:
    """All that was measured: costs by operation and by the number of web processes; sizes in bytes."""

    operations: Mapping[str, Mapping[int, Cost]]
    event_disk: float
    agent_disk: float
    agent_state: float
    event_archived: float
    measured_on: str = ""

    def of(self, operation: str, role: str) -> float:
        """Return the dearest processor time that was measured for it, in microseconds."""
        found = self.operations.get(operation, {}).values()
        return max((cost.processor_us.get(role, 0.0) for cost in found), default=0.0)

    def wal(self, operation: str) -> float:
        return max((cost.wal_bytes for cost in self.operations.get(operation, {}).values()), default=0.0)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Costs":
        """Read what `as_json()` made, and JSON made into text."""
        operations = {
            name: {int(processes): Cost(**cost) for processes, cost in costs.items()}
            for name, costs in found["operations"].items()
        }
        return cls(**{**found, "operations": operations})


@dataclass(frozen=True)
class Workload:
    """What the installation must carry, by the second, and what is assumed of its machines."""

    nodes: int = 10
    tenants: int = 10_000
    agents: int = 1_000_000
    events: float = 100_000.0
    batched: float = 0.0  # share of the events that come in batches
    verifications: float = 10_000.0
    deliveries: float = 100.0
    hot_days: float = 7.0
    kept_days: float = 183.0
    web_threads: int = 8
    utilisation: float = 0.6
    writer_processors: float = 64.0
    writer_wal_mb: float = 500.0

    @property
    def certificates(self) -> float:
        """Certificates a second, each agent's being renewed in time."""
        return self.agents / (CERTIFICATE_DAYS * DAY_SECONDS)

    @property
    def rates(self) -> dict[str, float]:
        """Operations a second."""
        return {
            EVENT: self.events * (1 - self.batched),
            BATCHED: self.events * self.batched,
            **dict.fromkeys(LATER, self.events),
            ARCHIVED: self.events,
            VERIFICATION: self.verifications,
            CERTIFICATE: self.certificates,
            KEY: self.certificates,
            DELIVERY: self.deliveries,
        }


@dataclass(frozen=True)
class Figure:
    """One derived number, and whether it was measured, extrapolated or assumed."""

    name: str
    value: float
    unit: str
    basis: str = EXTRAPOLATED


@dataclass(frozen=True)
class Ceiling:
    """Events a second that something carries which cannot be doubled by adding a node."""

    name: str
    events: float
    basis: str = EXTRAPOLATED


@dataclass(frozen=True)
class Plan:
    """What a workload needs."""

    figures: tuple[Figure, ...]
    ceilings: tuple[Ceiling, ...] = field(default=())

    @property
    def first_ceiling(self) -> Ceiling:
        """What one database, with one writer, meets first."""
        return min(self.ceilings, key=lambda one: one.events)

    def value(self, name: str) -> float:
        return next(one.value for one in self.figures if one.name == name)

    def ceiling(self, name: str) -> float:
        """Return the events a second of that ceiling; none that the workload does not meet."""
        return next((one.events for one in self.ceilings if one.name == name), inf)


def plan(costs: Costs, workload: Workload) -> Plan:
    """Derive everything."""
    return Plan(
        (
            *_processors(costs, workload),
            _valkey(costs, workload),
            *_web_nodes(costs, workload),
            *_written(costs, workload),
            *_kept(costs, workload),
        ),
        ceilings(costs, workload),
    )


def plans(costs: Costs, workload: Workload) -> dict[str, Plan]:
    """Derive everything for events that come singly, and for the same in batches."""
    return {
        "singly": plan(costs, replace(workload, batched=0.0)),
        "in batches": plan(costs, replace(workload, batched=1.0)),
    }


def busy_processors(costs: Costs, workload: Workload, role: str) -> float:
    """Return how many processors of a role are busy all the time."""
    return sum(rate * costs.of(operation, role) for operation, rate in workload.rates.items()) / MICRO


def ceilings(costs: Costs, workload: Workload) -> tuple[Ceiling, ...]:
    """Return what one PostgreSQL writer, and the tasks of which one runs at a time, carry.

    Only events count here: what else the writer does comes off.
    """
    share = {EVENT: 1 - workload.batched, BATCHED: workload.batched} | dict.fromkeys((*LATER, ARCHIVED), 1.0)
    able = workload.writer_processors * workload.utilisation * MICRO
    busy = sum(part * costs.of(name, POSTGRES) for name, part in share.items())
    wal = sum(part * costs.wal(name) for name, part in share.items())
    tasks = [
        (f"one task: {name}", TASK_SHARE * MICRO, costs.of(name, WORKER) + costs.of(name, POSTGRES))
        for name in LATER
    ]
    found = [
        ("the writer's processors", able, busy),
        ("the writer's log", workload.writer_wal_mb * MEGA, wal),
        *tasks,
    ]
    return tuple(Ceiling(name, most / cost) for name, most, cost in found if cost)


def _processors(costs: Costs, workload: Workload) -> list[Figure]:
    return [
        Figure(f"processors, {role}", busy_processors(costs, workload, role) / workload.utilisation, "")
        for role in ROLES
    ]


def _valkey(costs: Costs, workload: Workload) -> Figure:
    """Return primaries of a cluster: each has one thread for commands."""
    busy = busy_processors(costs, workload, VALKEY) / workload.utilisation
    return Figure("Valkey primaries", max(1, ceil(busy)), "")


def _web_nodes(costs: Costs, workload: Workload) -> list[Figure]:
    """Return web workers, each an event loop and its views, and what they connect to."""
    busiest = max(busy_processors(costs, workload, role) for role in (LOOP, VIEWS))
    workers = max(1, ceil(busiest / workload.utilisation / workload.nodes))
    of_web = workload.nodes * workers * (workload.web_threads + FAST_PATH_CONNECTIONS)
    of_workers = workload.nodes * WORKER_THREADS
    return [
        Figure("web workers of a node", workers, ""),
        Figure("PostgreSQL connections at most", ENVIRONMENTS * (of_web + of_workers), ""),
    ]


def _written(costs: Costs, workload: Workload) -> list[Figure]:
    wal = sum(rate * costs.wal(operation) for operation, rate in workload.rates.items())
    daily = workload.events * DAY_SECONDS
    return [
        Figure("write-ahead log", wal / MEGA, "MB/s"),
        Figure("the same a day", wal * DAY_SECONDS / TERA, "TB"),
        Figure("events on disk a day", daily * costs.event_disk / TERA, "TB"),
        Figure("archives a day", daily * costs.event_archived / TERA, "TB"),
    ]


def _kept(costs: Costs, workload: Workload) -> list[Figure]:
    daily = workload.events * DAY_SECONDS
    cold_days = max(0.0, workload.kept_days - workload.hot_days)
    return [
        Figure("hot events", daily * workload.hot_days * costs.event_disk / TERA, "TB"),
        Figure("cold events", daily * cold_days * costs.event_archived / TERA, "TB"),
        Figure("agents on disk", workload.agents * costs.agent_disk / GIGA, "GB"),
        Figure("Valkey memory", workload.agents * costs.agent_state / GIGA, "GB"),
        Figure("events a second of a tenant, mean", workload.events / workload.tenants, "1/s"),
    ]
