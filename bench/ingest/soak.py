"""A long steady load: whether memory and latency stay what they were at its beginning."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from operator import sub

from bench.harness import machine, web
from bench.harness.load import Outcome
from bench.harness.report import table
from bench.harness.stats import percentile
from bench.ingest.flatness import FLAT, STOLEN, THIRDS, Verdict, Window, courses, drift, memories
from bench.ingest.run import IngestRun, failures_of
from compliance.localdev.console import say

CONNECTIONS = 256
OTHERS = ("worker", "sender", "signals", "beat")
NO_NEW_KEYS = {"KEY_POOL_SIZE": "0", "KEY_POOL_SIZE_TEST": "0"}  # nothing certifies meanwhile
PERIOD = 30
"""Minutes of which a third is the age at which a Celery worker replaces its connections to PostgreSQL."""


def soak(run: IngestRun) -> None:
    """Offer events for `soak` minutes in windows, and note memory and latency of each."""
    options, found = run.options, list[Window]()
    wanted = max(2 * THIRDS, round(options.soak * 60 / options.soak_window))

    outcomes: list[Outcome] = []

    def measure() -> list[Outcome]:
        load = run.load(run.service, connections=CONNECTIONS)
        with _others(run) as others:
            for done in range(wanted):
                ticks, spent = machine.processor_ticks(), spent_by_all(run, others)
                outcomes.append(load.offered(options.offered_rate, options.soak_window))
                stolen, passed = map(sub, machine.processor_ticks(), ticks)
                cost, held = spent_by_all(run, others) - spent, memory_of_all(run, others)
                found.append(window(outcomes[-1], held, cost=cost, stolen=stolen / passed))
                say(f"  … soak, window {done + 1} of {wanted}: {_in_words(found[-1])}")
        return outcomes

    run.checked("soak", measure)
    _tell(run, found, failures_of(*outcomes))


@contextmanager
def _others(run: IngestRun) -> Iterator[dict[str, int]]:
    """The other programs of the service beside the web server; the process of each by its name."""
    environment = run.place.environment() | NO_NEW_KEYS
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                web.started(name, web.part(name, run.place, port=0), environment, run.place)
            ).pid
            for name in OTHERS
        }


def window(outcome: Outcome, memory: Mapping[str, float], *, cost: float, stolen: float) -> Window:
    """Sum up a part's requests; `cost` in seconds of processor time."""
    ordered = sorted(outcome.latencies)
    p50, p99 = (percentile(ordered, share) * 1000 for share in (0.5, 0.99))
    pace, each = (seconds / max(1, outcome.good) * 1e6 for seconds in (outcome.own_seconds, cost))
    return Window(p50, p99, outcome.errors, memory, pace, each, stolen)


def spent_by_all(run: IngestRun, others: Mapping[str, int]) -> float:
    """Return the processor time in seconds that the service and its servers have had."""
    servers = run.place.servers.postgres.running(), run.place.servers.redis.running()
    roots = (run.service.process.pid, *others.values(), *(one.pid for one in servers if one is not None))
    return sum(map(machine.family_spent_seconds, roots))


def memory_of_all(run: IngestRun, others: Mapping[str, int]) -> dict[str, float]:
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


def memory(run: IngestRun) -> list[float]:
    """MB of each web worker of the service."""
    return [machine.resident_mb(pid) for pid in run.service.workers()]


def in_words(megabytes: list[float]) -> str:
    """ "100 + 101 MB"."""
    return " + ".join(f"{one:.0f}" for one in megabytes) + " MB"


def _in_words(one: Window) -> str:
    held = ", ".join(f"{name} {megabytes:.0f}" for name, megabytes in one.memory.items())
    return (
        f"p50 {one.p50:.1f} ms, p99 {one.p99:.1f} ms, {one.errors} errors, pace {one.pace:.1f} µs, "
        f"service {one.cost:.0f} µs, stolen {one.stolen:.2%}; MB: {held}"
    )


def _tell(run: IngestRun, windows: Sequence[Window], failures: str) -> None:
    errors, held, drifted = sum(one.errors for one in windows), memories(windows), drift(windows)
    minutes = len(windows) * run.options.soak_window / 60
    rows = [["soak", "second third", "last third", "", "moved", ""]]
    rows += [[*one.cells(), ""] for one in courses(windows)] + [drifted.cells()]
    rows += [[*one.cells(), one.verdict] for one in held]
    holds = all(one.verdict is Verdict.FLAT for one in held) and not errors
    run.is_flat &= holds and drifted.verdict is not Verdict.NOT_FLAT
    early, late = drifted.used
    run.report.footer += [
        f"Soak: {minutes:g} minutes at {run.options.offered_rate:,.0f}/s in {len(windows)} windows, "
        f"{errors} errors{f' ({failures})' if failures else ''}",
        *table(rows),
        "Pace and service: processor time of an event in the load generator, and in the service's processes",
        f"p99 at an equal pace: ± standard error, of the {early} and {late} windows of the last two thirds "
        f"in which the hypervisor took at most {STOLEN:.1%}",
        f"Memory flat within {FLAT:.0%}, and no error: {'yes' if holds else 'NO'}; p99: {drifted.verdict}",
        *([f"PostgreSQL's memory rises and falls: soak for {PERIOD} minutes"] if minutes % PERIOD else []),
        "",
    ]
