"""Whether what a soak measured stayed what it was: medians of its thirds, and the trend of p99."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log, nan

from bench.harness.report import number
from bench.harness.stats import median
from bench.ingest.trends import trend

STOLEN = 0.002
"""Share of processor time taken by the hypervisor above which a window's p99 is not used."""
FLAT = 0.05
"""How far, of itself, a figure may move from the second third to the last and be called flat."""
THIRDS = 3
"""The first warms caches, pools and the allocator up."""
SURE = 2.0
"""Standard errors between an estimate and a limit that it is said to be beyond."""


class Verdict(StrEnum):
    FLAT = "flat"
    NOT_FLAT = "NOT FLAT"
    UNDECIDED = "undecided"
    """The machine's own ups and downs are larger than what is looked for."""


@dataclass(frozen=True)
class Window:
    """A part of the soak: latencies in milliseconds, megabytes by process.

    `pace` is the processor time of an answer in the load generator, `cost` that in the service with its
    PostgreSQL and Valkey, in microseconds. `stolen` is the share of processor time that the hypervisor took.
    """

    p50: float
    p99: float
    errors: int
    memory: Mapping[str, float]
    pace: float
    cost: float = 0.0
    stolen: float = 0.0

    @property
    def is_usable(self) -> bool:
        """Whether its p99 can be compared with others'."""
        return self.stolen <= STOLEN and self.p99 > 0 and self.pace > 0


@dataclass(frozen=True)
class Course:
    """One figure over the soak: the medians of its second and of its last third."""

    name: str
    unit: str
    early: float
    late: float

    @property
    def moved(self) -> float:
        return (self.late - self.early) / self.early if self.early else 0.0

    @property
    def verdict(self) -> Verdict:
        return Verdict.FLAT if abs(self.moved) <= FLAT else Verdict.NOT_FLAT

    def cells(self) -> list[str]:
        return [self.name, number(self.early), number(self.late), self.unit, f"{self.moved:+.1%}"]


@dataclass(frozen=True)
class Drift:
    """How p99 moved from the second third to the last at an equal pace of the machine; shares of itself.

    `error` is the standard error, `used` the number of usable windows in either third; nan of too few.
    """

    moved: float
    error: float
    used: tuple[int, int]

    @property
    def verdict(self) -> Verdict:
        if abs(self.moved) + SURE * self.error <= FLAT:
            return Verdict.FLAT
        if abs(self.moved) - SURE * self.error > FLAT:
            return Verdict.NOT_FLAT
        return Verdict.UNDECIDED

    def cells(self) -> list[str]:
        return ["p99, equal pace", "", "", "", f"{self.moved:+.1%} ± {self.error:.1%}", self.verdict]


def courses(windows: Sequence[Window]) -> list[Course]:
    """Return how p99, the generator's and the service's processor time moved."""
    return [
        _course("p99", "ms", [one.p99 for one in windows]),
        _course("pace", "µs", [one.pace for one in windows]),
        _course("service", "µs", [one.cost for one in windows]),
    ]


def memories(windows: Sequence[Window]) -> list[Course]:
    """Return how each process's memory moved; one that ended has none."""
    return [_course(name, "MB", [one.memory.get(name, 0.0) for one in windows]) for name in windows[0].memory]


def drift(windows: Sequence[Window]) -> Drift:
    """Fit log p99 to log pace and time by least squares, over the usable windows of the last two thirds.

    Where neighbours share the processors' cores, the same work takes longer for minutes, and p99 much longer,
    whatever the service does. At least half of the windows of either third must be usable.
    """
    share = len(windows) // THIRDS
    early, late = (
        [(place, one) for place, one in enumerate(windows) if place in places and one.is_usable]
        for places in (range(share, 2 * share), range(2 * share, len(windows)))
    )
    used = len(early), len(late)
    if min(used) < max(2, share / 2):
        return Drift(nan, nan, used)
    moved, error = trend(
        [log(one.p99) for _, one in (*early, *late)],
        times=[place / share for place, _ in (*early, *late)],
        beside=[log(one.pace) for _, one in (*early, *late)],
    )
    return Drift(exp(moved) - 1, exp(moved) * error, used)


def _course(name: str, unit: str, values: Sequence[float]) -> Course:
    share = len(values) // THIRDS
    return Course(name, unit, median(values[share : 2 * share]), median(values[2 * share :]))
