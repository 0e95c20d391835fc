"""Single events and batches at saturation, in turns with the rulers."""

from collections import defaultdict
from collections.abc import Iterator

from bench.harness import answers
from bench.harness.load import Load, Outcome
from bench.harness.report import Row
from bench.harness.stats import median, percentile
from bench.harness.web import WebServer
from bench.ingest.run import WARM_SECONDS, IngestRun, failures_of
from bench.rulers.copying import copied
from compliance.localdev.console import say

SERVICE, FASTAPI, DRF, LIMIT = "service", "FastAPI", "plain DRF", "pgbench"
GENERATED, COPY = "generated", "COPY"


def single(run: IngestRun) -> None:
    """64 connections, one event a request, as fast as they are answered."""
    rates: dict[str, list[float]] = defaultdict(list)
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    servers = {SERVICE: run.service, FASTAPI: run.fastapi, DRF: run.drf}

    def measure() -> list[Outcome]:
        warm = [run.single(server, WARM_SECONDS) for server in servers.values() if server is not None]
        for _ in range(run.options.repetitions):
            for name, server in servers.items():
                if server is not None:
                    outcome = run.single(server)
                    outcomes[name].append(outcome)
                    rates[name].append(outcome.rate)
            if run.pgbench is not None:
                rates[LIMIT].append(run.pgbench.single(run.clients.single, run.options.seconds).rate)
            say("  … single: " + ", ".join(f"{name} {found[-1]:,.0f}/s" for name, found in rates.items()))
        return [warm[0], *outcomes[SERVICE]]

    run.checked("single", measure)
    service, fastapi, drf, limit = (
        median(rates[name]) if rates[name] else None for name in (SERVICE, FASTAPI, DRF, LIMIT)
    )
    note = failures_of(*outcomes[SERVICE])
    run.report.rows.append(Row("single events", "1/s", service, fastapi, drf, limit, note=note))
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        service, fastapi, drf = (latency(outcomes[name], share) for name in (SERVICE, FASTAPI, DRF))
        run.report.rows.append(
            Row(f"  their latency {label}", "ms", service, fastapi, drf, less_is_better=True)
        )


def batch(run: IngestRun) -> None:
    """A thousand events a request, over few connections; only the rulers where the service has none."""
    status = _batch_status(run)
    is_there = status not in ("404", "405")
    rates: dict[str, list[float]] = defaultdict(list)
    outcomes: list[Outcome] = []

    def measure() -> list[Outcome]:
        warm = [_batches(run, run.service, WARM_SECONDS)] if is_there else []
        for _ in range(run.options.repetitions):
            if is_there:
                outcomes.append(_batches(run, run.service))
                rates[SERVICE].append(_events_rate(outcomes[-1]))
            if run.fastapi is not None:
                rates[FASTAPI].append(_events_rate(_batches(run, run.fastapi)))
            for name, rate in _limits(run):
                rates[name].append(rate)
            say("  … batch: " + ", ".join(f"{name} {found[-1]:,.0f}/s" for name, found in rates.items()))
        return [*warm, *outcomes]

    run.checked("batch", measure)
    service, fastapi, limit = (
        median(rates[name]) if rates[name] else None for name in (SERVICE, FASTAPI, LIMIT)
    )
    refused = sum(outcome.good * run.options.batch_size - len(outcome.ids) for outcome in outcomes)
    if refused:
        run.report.footer.append(f"Batches: {refused:,} events of answered requests have no id in the answer")
    run.report.footer += in_words({name: median(found) for name, found in rates.items() if found})
    note = failures_of(*outcomes) if is_there else f"POST /v1/events/batch answers {status}"
    run.report.rows.append(Row("batched events", "1/s", service, fastapi, None, limit, note=note))


def _limits(run: IngestRun) -> Iterator[tuple[str, float]]:
    """What PostgreSQL alone does with batches, in three ways."""
    ruler, seconds = run.pgbench, run.options.seconds
    if ruler is None:
        return
    yield LIMIT, ruler.batch(run.clients.batch, seconds).rate
    yield COPY, copied(ruler.url, ruler.batches, seconds)
    yield GENERATED, ruler.generated(run.clients.generated, seconds).rate


def in_words(rates: dict[str, float]) -> list[str]:
    """Each way in which PostgreSQL alone stores batches, with its rate and the service's share of it."""
    service = rates.get(SERVICE)
    ways = {
        LIMIT: "INSERT of a thousand VALUES, the service's rows, sent and parsed each time",
        COPY: "COPY of the same rows, finished, over one connection",
        GENERATED: "smaller rows generated inside PostgreSQL (INSERT from generate_series)",
    }
    lines = []
    for name, way in ways.items():
        if name not in rates:
            continue
        share = f", the service {service / rates[name]:.0%} of it" if service else ""
        lines.append(f"Batches, PostgreSQL alone: {rates[name]:,.0f}/s by {way}{share}")
    return lines


def latency(outcomes: list[Outcome], share: float) -> float | None:
    """A percentile over all repetitions, in milliseconds."""
    values = sorted(value for outcome in outcomes for value in outcome.latencies)
    return percentile(values, share) * 1000 if values else None


def _batches(run: IngestRun, server: WebServer, seconds: float | None = None) -> Outcome:
    source = run.traffic.batch(run.options.batch_size, key=run.key)
    load = Load(server.port, source, connections=run.options.batch_connections, ids=answers.all_ids)
    return load.closed(seconds or run.options.seconds)


def _events_rate(outcome: Outcome) -> float:
    """Events a second: the ids of the answers that came in time."""
    if not outcome.good or not outcome.seconds:
        return 0.0
    return len(outcome.ids) / outcome.good * outcome.counted / outcome.seconds


def _batch_status(run: IngestRun) -> str:
    """What a batch of one is answered: "2xx", or the status that refuses it."""
    source = run.traffic.batch(1, key=run.key)
    found = Load(run.service.port, source, connections=1, ids=answers.all_ids).closed(10.0, until=1)
    return "2xx" if found.good else next(iter(found.failures), "no answer")
