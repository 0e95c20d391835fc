"""Single events and batches at saturation, in turns with FastAPI."""

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
SHARES = {"p50": 0.5, "p99": 0.99}
Outcomes = dict[str, list[Outcome]]


def single(run: IngestRun) -> None:
    """64 connections, one event a request, as fast as they are answered."""
    servers = {"service": run.service, "fastapi": run.fastapi}
    found = _in_turns(run, "single", servers, run.single, lambda outcome: outcome.rate)
    _tell(run, "single events", found, lambda outcome: outcome.rate)
    _tell_latencies(run, found)


def batch(run: IngestRun) -> None:
    """A thousand events a request, over few connections."""
    servers = {"service": run.service, "fastapi": run.fastapi}
    found = _in_turns(run, "batch", servers, lambda *given: _batches(run, *given), _events_rate)
    _tell(run, "batched events", found, _events_rate)


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
    run.report.rows.append(
        Row(name, "1/s", rates["service"], rates.get("fastapi"), note=failures_of(*found["service"]))
    )


def _tell_latencies(run: IngestRun, found: Outcomes) -> None:
    """Percentiles over all repetitions, in milliseconds."""
    ordered = {
        server: sorted(value for outcome in outcomes for value in outcome.latencies)
        for server, outcomes in found.items()
    }
    for name, share in SHARES.items():
        values = {server: percentile(each, share) * 1_000 for server, each in ordered.items()}
        run.report.rows.append(
            Row(f"  latency {name}", "ms", values["service"], values.get("fastapi"), less_is_better=True)
        )


def _batches(run: IngestRun, server: WebServer, seconds: float) -> Outcome:
    source = run.traffic.batch(BATCH, key=run.key)
    load = Load(server.port, source, connections=BATCH_CONNECTIONS, ids=answers.all_ids)
    return load.closed(seconds)


def _events_rate(outcome: Outcome) -> float:
    """Events a second: the ids of the answers that came in time."""
    if not outcome.good or not outcome.seconds:
        return 0.0
    return len(outcome.ids) / outcome.good * outcome.counted / outcome.seconds
