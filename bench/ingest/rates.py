"""Single events and batches at saturation, and a steady rate, in turns with the rulers."""

from collections import defaultdict
from collections.abc import Callable

from bench.harness import answers
from bench.harness.load import Load, Outcome
from bench.harness.report import Row
from bench.harness.stats import median, percentile
from bench.harness.web import WebServer
from bench.ingest.run import WARM_SECONDS, IngestRun, failures_of
from compliance.localdev.console import say

BATCH, BATCH_CONNECTIONS = 1_000, 4
OFFERED_CONNECTIONS = 256
SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}
Outcomes = dict[str, list[Outcome]]


def single(run: IngestRun) -> None:
    """64 connections, one event a request, as fast as they are answered."""
    servers = {"service": run.service, "fastapi": run.fastapi, "drf": run.drf}
    found = _in_turns(run, "single", servers, run.single, lambda outcome: outcome.rate)
    _tell(run, "single events", found, lambda outcome: outcome.rate)
    _tell_latencies(run, found, ("p50", "p99"))


def batch(run: IngestRun) -> None:
    """A thousand events a request, over few connections."""
    servers = {"service": run.service, "fastapi": run.fastapi}
    found = _in_turns(run, "batch", servers, lambda *given: _batches(run, *given), _events_rate)
    _tell(run, "batched events", found, _events_rate)


def offered(run: IngestRun) -> None:
    """A steady rate, whether the server keeps up or not: latency counts from the scheduled time."""
    rate, found = run.options.rate, defaultdict[str, list[Outcome]](list)

    def offer(name: str, server: WebServer) -> list[Outcome]:
        load = run.load(server, connections=OFFERED_CONNECTIONS)
        found[name].append(load.offered(rate, run.options.offered_seconds))
        return found[name]

    run.checked("offered", lambda: offer("service", run.service))
    if run.fastapi is not None:
        offer("fastapi", run.fastapi)
    _tell(run, f"offered {rate:,.0f}/s: answered", found, lambda outcome: outcome.rate)
    _tell_latencies(run, found, SHARES)


def _in_turns(
    run: IngestRun,
    part: str,
    servers: dict[str, WebServer | None],
    measure: Callable[[WebServer, float], Outcome],
    rate: Callable[[Outcome], float],
) -> Outcomes:
    """Measure each server in turn, and look for the events that the service acknowledged."""
    there = {name: server for name, server in servers.items() if server is not None}
    found = defaultdict[str, list[Outcome]](list)

    def measured() -> list[Outcome]:
        warm = [measure(server, WARM_SECONDS) for server in there.values()]
        for _ in range(run.options.repetitions):
            for name, server in there.items():
                found[name].append(measure(server, run.options.seconds))
            say(
                f"  … {part}: " + ", ".join(f"{name} {rate(each[-1]):,.0f}/s" for name, each in found.items())
            )
        return [warm[0], *found["service"]]

    run.checked(part, measured)
    return found


def _tell(run: IngestRun, name: str, found: Outcomes, rate: Callable[[Outcome], float]) -> None:
    rates = {server: median([rate(one) for one in outcomes]) for server, outcomes in found.items()}
    run.report.rows.append(Row(name, "1/s", *_figures(rates), note=failures_of(*found["service"])))


def _tell_latencies(run: IngestRun, found: Outcomes, names: "dict[str, float] | tuple[str, ...]") -> None:
    """Percentiles over all repetitions, in milliseconds."""
    ordered = {
        server: sorted(value for outcome in outcomes for value in outcome.latencies)
        for server, outcomes in found.items()
    }
    for name in names:
        values = {server: percentile(each, SHARES[name]) * 1_000 for server, each in ordered.items()}
        run.report.rows.append(Row(f"  latency {name}", "ms", *_figures(values), less_is_better=True))


def _figures(by_server: dict[str, float]) -> tuple[float | None, float | None, float | None]:
    """In the order of a row's columns."""
    return by_server.get("service"), by_server.get("fastapi"), by_server.get("drf")


def _batches(run: IngestRun, server: WebServer, seconds: float) -> Outcome:
    source = run.traffic.batch(BATCH, key=run.key)
    load = Load(server.port, source, connections=BATCH_CONNECTIONS, ids=answers.all_ids)
    return load.closed(seconds)


def _events_rate(outcome: Outcome) -> float:
    """Events a second: the ids of the answers that came in time."""
    if not outcome.good or not outcome.seconds:
        return 0.0
    return len(outcome.ids) / outcome.good * outcome.counted / outcome.seconds
