"""A long steady load: whether memory and latency stay what they were at its beginning."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import exp, log
from operator import sub

from bench.harness import machine, web
from bench.harness.load import Outcome
from bench.harness.report import number, table
from bench.harness.stats import median, percentile
from bench.harness.trends import trend
from bench.parts.run import Run, failures_of
from compliance.localdev.console import say

CONNECTIONS = 256
STOLEN = 0.002
"""Above this share of the processors' time taken by the hypervisor, a window's p99 tells of that instead."""
FLAT = 0.05
"""How far, of itself, a figure may move from the second third to the last and be called flat."""
THIRDS = 3
"""A worker gives its connections back every ten minutes, so what PostgreSQL holds for them rises and falls:
a third of the usual half hour is one such period.
"""
OTHERS = ("worker", "sender", "signals", "beat")
NO_NEW_KEYS = {"KEY_POOL_SIZE": "0", "KEY_POOL_SIZE_TEST": "0"}  # nothing certifies meanwhile


@dataclass(frozen=True)
class Window:
    """A part of the soak: latencies in milliseconds, megabytes by process; how fast the machine was.

    `pace` is the processor time of a request in the load generator, in microseconds: always the same work.
    `stolen` is the share of the processors' time that the hypervisor gave to others.
    """

    p50: float
    p99: float
    errors: int
    memory: Mapping[str, float]
    pace: float
    stolen: float = 0.0

    @property
    def is_undisturbed(self) -> bool:
        return self.stolen <= STOLEN


@dataclass(frozen=True)
class Course:
    """One figure over the soak: the medians of its second and of its last third.

    The first third warms caches, pools and the allocator up.
    """

    name: str
    early: float
    late: float

    @property
    def moved(self) -> float:
        return (self.late - self.early) / self.early if self.early else 0.0

    @property
    def is_flat(self) -> bool:
        return abs(self.moved) <= FLAT

    def cells(self, unit: str, *, is_judged: bool = True) -> list[str]:
        figures = [self.name, number(self.early), number(self.late), unit, f"{self.moved:+.1%}"]
        return [*figures, _verdict(self.is_flat) if is_judged else ""]


@dataclass(frozen=True)
class Drift:
    """How p99 moved in a third of the soak at an equal pace of the machine; shares of itself.

    `error` is the standard error, `windows` are those that it is drawn from.
    """

    moved: float
    error: float
    windows: int

    @property
    def is_flat(self) -> bool:
        return abs(self.moved) <= FLAT

    def cells(self) -> list[str]:
        moved = f"{self.moved:+.1%} ± {self.error:.1%}"
        return ["p99, equal pace", "", "", "", moved, _verdict(self.is_flat)]


def soak(run: Run) -> None:
    """Offer events for `soak` minutes in windows, and note memory and latency of each."""
    options, found = run.options, list[Window]()
    wanted = max(2 * THIRDS, round(options.soak * 60 / options.soak_window))

    outcomes: list[Outcome] = []

    def measure() -> list[Outcome]:
        load = run.load(run.service, connections=CONNECTIONS)
        with _others(run) as others:
            for done in range(wanted):
                before = machine.stolen_ticks()
                outcomes.append(load.offered(options.offered_rate, options.soak_window))
                stolen, passed = map(sub, machine.stolen_ticks(), before)
                found.append(window(outcomes[-1], memory_of_all(run, others), stolen / passed))
                say(f"  … soak, window {done + 1} of {wanted}: {_in_words(found[-1])}")
        return outcomes

    run.checked("soak", measure)
    _tell(run, found, failures_of(*outcomes))


@contextmanager
def _others(run: Run) -> Iterator[dict[str, int]]:
    """The other programs of the service beside the web server; the process of each by its name."""
    environment = run.place.environment() | NO_NEW_KEYS
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                web.started(name, web.part(name, run.place, port=0), environment, run.place)
            ).pid
            for name in OTHERS
        }


def window(outcome: Outcome, memory: Mapping[str, float], stolen: float) -> Window:
    """Sum up a part's requests."""
    ordered = sorted(outcome.latencies)
    p50, p99 = (percentile(ordered, share) * 1000 for share in (0.5, 0.99))
    pace = outcome.own_seconds / max(1, len(ordered) + outcome.errors) * 1e6
    return Window(p50, p99, outcome.errors, memory, pace, stolen)


def courses(windows: Sequence[Window]) -> list[Course]:
    """Return how p99, the machine's pace and each process's memory moved."""
    early, late = _compared(windows)

    def course(name: str, values: Sequence[float], later: Sequence[float]) -> Course:
        return Course(name, median(values), median(later))

    names = windows[0].memory
    return [
        course("p99", [one.p99 for one in early], [one.p99 for one in late]),
        course("pace", [one.pace for one in early], [one.pace for one in late]),
        *(
            course(
                name,
                [one.memory.get(name, 0.0) for one in early],
                [one.memory.get(name, 0.0) for one in late],
            )
            for name in names
        ),
    ]


def drift(windows: Sequence[Window]) -> Drift:
    """Fit log p99 to log pace and time by least squares, over the undisturbed windows after the first.

    Where neighbours share the processors' cores, the same work takes half as long again for minutes, and p99
    several times as long, whatever the service does. In the first window its processes start.
    """
    share = len(windows) / THIRDS
    settled = {place: one for place, one in enumerate(windows) if place and one.is_undisturbed}
    moved, error = trend(
        [log(one.p99) for one in settled.values()],
        times=[place / share for place in settled],
        beside=[log(one.pace) for one in settled.values()],
    )
    return Drift(exp(moved) - 1, error, len(settled))


def _compared(windows: Sequence[Window]) -> tuple[Sequence[Window], Sequence[Window]]:
    """Return the second third and the last."""
    share = len(windows) // THIRDS
    return windows[share : 2 * share], windows[-share:]


def _verdict(is_flat: bool) -> str:
    return "flat" if is_flat else "NOT FLAT"


def memory_of_all(run: Run, others: Mapping[str, int]) -> dict[str, float]:
    """Return the megabytes of every process of the service and of its servers that runs here.

    Of PostgreSQL, its processes' own memory, since each touches more of the shared buffers with time, without
    those that come and go.
    """
    servers = run.place.servers
    postgres, valkey = servers.postgres.running(), servers.redis.running()
    found = {
        f"web loop {place}": machine.resident_mb(pid) for place, pid in enumerate(run.service.workers(), 1)
    }
    found |= {f"views {place}": machine.resident_mb(pid) for place, pid in enumerate(run.service.views(), 1)}
    found |= {
        f"key host {place}": machine.resident_mb(pid) for place, pid in enumerate(run.place.key_hosts(), 1)
    }
    found |= {name: sum(map(machine.resident_mb, machine.descendants(pid))) for name, pid in others.items()}
    if postgres is not None:
        staying = (pid for pid in machine.descendants(postgres.pid) if not _passes(pid))
        found["PostgreSQL"] = sum(map(machine.own_mb, staying))
    if valkey is not None:
        found["Valkey"] = machine.resident_mb(valkey.pid)
    return found


def _passes(pid: int) -> bool:
    """Whether it is a process of PostgreSQL that ends by itself, such as a vacuum."""
    return any(name in machine.command_of(pid) for name in ("autovacuum worker", "parallel worker"))


def memory(run: Run) -> list[float]:
    """MB of each web worker of the service."""
    return [machine.resident_mb(pid) for pid in run.service.workers()]


def in_words(megabytes: list[float]) -> str:
    """ "100 + 101 MB"."""
    return " + ".join(f"{one:.0f}" for one in megabytes) + " MB"


def _in_words(one: Window) -> str:
    held = ", ".join(f"{name} {megabytes:.0f}" for name, megabytes in one.memory.items())
    return (
        f"p50 {one.p50:.1f} ms, p99 {one.p99:.1f} ms, {one.errors} errors, "
        f"pace {one.pace:.1f} µs, stolen {one.stolen:.2%}; MB: {held}"
    )


def _tell(run: Run, windows: Sequence[Window], failures: str) -> None:
    found, errors, moved = courses(windows), sum(one.errors for one in windows), drift(windows)
    minutes = len(windows) * run.options.soak_window / 60
    latency, pace, *memories = found
    rows = [["soak", "second third", "last third", "", "moved", ""]]
    rows += [latency.cells("ms", is_judged=False), pace.cells("µs", is_judged=False), moved.cells()]
    rows += [one.cells("MB") for one in memories]
    is_flat = moved.is_flat and all(one.is_flat for one in memories) and not errors
    run.is_flat &= is_flat
    run.report.footer += [
        f"Soak: {minutes:g} minutes at {run.options.offered_rate:,.0f}/s in {len(windows)} windows, "
        f"{errors} errors{f' ({failures})' if failures else ''}",
        *table(rows),
        "Pace: processor time of a request in the load generator, always the same work",
        f"p99 at an equal pace: change in a third, ± standard error, of the {moved.windows} windows after "
        f"the first in which the hypervisor took at most {STOLEN:.1%}",
        f"Memory, and p99 at an equal pace, flat within {FLAT:.0%}; no error: {'yes' if is_flat else 'NO'}",
        "",
    ]
