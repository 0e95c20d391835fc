"""A steady thousand events a second, whether the server keeps up or not."""

from collections.abc import Sequence

from bench.harness.load import Outcome
from bench.harness.report import Row
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from bench.ingest.run import IngestRun, failures_of
from compliance.localdev.console import say

CONNECTIONS = 256
SHARES = (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0))


def offered(run: IngestRun) -> None:
    """Latency from the scheduled time, of the service, of FastAPI and of PostgreSQL alone."""
    rate, seconds = run.options.offered_rate, run.options.offered_seconds
    found: list[Outcome] = []

    def measure() -> list[Outcome]:
        found.append(_offer(run, run.service))
        return found

    run.checked("offered", measure)
    service = found[0]
    say(f"  … offered {rate:,.0f}/s: {service.rate:,.0f}/s answered, {service.errors} errors")
    peer = _offer(run, run.fastapi) if run.fastapi is not None else None
    limit = run.pgbench.offered(rate, run.clients.single, seconds) if run.pgbench is not None else None
    run.report.rows.append(
        Row(
            f"offered {rate:,.0f}/s: answered",
            "1/s",
            service.rate,
            peer.rate if peer else None,
            limit=limit.rate if limit else None,
            note=failures_of(service),
        )
    )
    columns = [
        sorted(service.latencies),
        sorted(peer.latencies) if peer else None,
        limit.latencies if limit else None,
    ]
    for label, share in SHARES:
        mine, its, least = (_milliseconds(column, share) for column in columns)
        run.report.rows.append(Row(f"  latency {label}", "ms", mine, its, limit=least, less_is_better=True))
    run.report.rows.append(
        Row("  errors", "requests", float(service.errors), float(peer.errors) if peer else None)
    )


def _offer(run: IngestRun, server: WebServer) -> Outcome:
    load = run.load(server, connections=CONNECTIONS)
    return load.offered(run.options.offered_rate, run.options.offered_seconds)


def _milliseconds(ordered: Sequence[float] | None, share: float) -> float | None:
    return percentile(ordered, share) * 1000 if ordered else None
