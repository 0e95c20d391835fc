"""What a table of millions does to writing and to reading pages."""

import random

from bench.data.history import History
from bench.harness import answers
from bench.harness.load import Load, Outcome
from bench.harness.report import Row
from bench.harness.stats import median, percentile
from bench.harness.traffic import reads
from bench.ingest.run import IngestRun, failures_of
from compliance.localdev.console import say, step

PAGES = 300
WARM_PAGES = 20
MILLION = 1_000_000
COLUMNS = {"agent_id": "agent_id", "band": "risk_band", "action_type": "action_type"}
"""A filter's name in the API, and its column."""


def growth(run: IngestRun) -> None:
    """The single rate and the latency of pages at each size, beside the empty table's."""
    sizes = sorted(round(millions * MILLION) for millions in run.options.growth)
    history = History(run.place, run.traffic.agents, sizes[-1])
    empty = _rate(run, "growth, nearly empty")
    run.report.rows.append(Row("single events, nearly empty table", "1/s", empty))
    history.make_partitions()
    for size in sizes:
        with step(f"a history of {size:,} events"):
            history.fill(size)
        rate = _rate(run, f"growth, {size:,} rows")
        ratio = f"{rate / empty:.2f} of the nearly empty table's rate" if empty else ""
        run.report.rows.append(Row(f"single events, {size:,} rows", "1/s", rate, note=ratio))
        _pages(run, history)


def _rate(run: IngestRun, part: str) -> float:
    """The median over the repetitions."""
    found: list[Outcome] = []

    def measure() -> list[Outcome]:
        found.extend(run.single(run.service) for _ in range(run.options.repetitions))
        return found

    run.checked(part, measure)
    return median([outcome.rate for outcome in found])


def _pages(run: IngestRun, history: History) -> None:
    """Pages of 50 at random depths, one after the other over one connection, and their bare query."""
    chance = random.Random(history.filled)
    moments = history.moments(PAGES, seed=history.filled)
    filters: dict[str, list[dict[str, str]]] = {
        "of all": [{} for _ in moments],
        "of one agent": [{"agent_id": chance.choice(run.traffic.agents)} for _ in moments],
        "of low band": [{"band": "low"} for _ in moments],
        "of medium or high band": [{"band": chance.choice(("medium", "high"))} for _ in moments],
        "of one type": [
            {"action_type": chance.choice(("data_access", "transaction_initiated"))} for _ in moments
        ],
    }
    for name, conditions in filters.items():
        paths = [
            f"/v1/events?limit=50&before={moment:%Y-%m-%dT%H:%M:%S.%fZ}"
            + "".join(f"&{field}={value}" for field, value in condition.items())
            for moment, condition in zip(moments, conditions, strict=True)
        ]
        source = reads(paths, key=run.key)
        Load(run.service.port, source, connections=1, ids=answers.no_ids).closed(20, until=WARM_PAGES)
        outcome = Load(run.service.port, source, connections=1, ids=answers.no_ids).closed(60, until=PAGES)
        bare = history.page_latencies(
            moments,
            [{COLUMNS[field]: value for field, value in condition.items()} for condition in conditions],
        )
        mine = sorted(outcome.latencies)
        for label, share in (("p50", 0.5), ("p99", 0.99)):
            figures = (percentile(mine, share) * 1000, None, None, percentile(bare, share) * 1000)
            run.report.rows.append(Row(f"  page {name}, {label}", "ms", *figures, less_is_better=True))
        if outcome.errors:
            run.report.footer.append(f"Pages {name} at {history.filled:,} rows: {failures_of(outcome)}")
        say(f"  … pages {name}: p50 {percentile(mine, 0.5) * 1000:.1f} ms")
