"""Verifying over HTTP, at saturation and at a steady rate, beside a plain Django view that reads the row."""

from dataclasses import dataclass, field
from statistics import median

import psycopg

from bench.harness import answers, web
from bench.harness.load import Load, Outcome
from bench.harness.report import TableRun, number
from bench.harness.stats import percentile
from bench.harness.traffic import reads
from bench.harness.web import WebServer
from compliance.localdev.console import say

CONNECTIONS = 32
OFFERED_RATE = 1_000.0
OFFERED_CONNECTIONS = 128
WHAT_IT_CAN_TAKE = 0.8
"""Of its saturation, for a server that can't take the offered rate."""


@dataclass
class Contestant:
    """A server, the path of its read, and what came of each turn."""

    name: str
    server: WebServer
    path: str
    saturated: list[Outcome] = field(default_factory=list)
    steady: list[Outcome] = field(default_factory=list)

    @property
    def saturation(self) -> float:
        return median(one.rate for one in self.saturated)

    def measure(self, serials: list[str], seconds: float, steady_seconds: float) -> None:
        """One turn, after a second to warm up."""
        source = reads([self.path + serial for serial in serials], key="")
        for span in (1.0, seconds):
            outcome = Load(self.server.port, source, connections=CONNECTIONS, ids=answers.no_ids).closed(span)
        self.saturated.append(outcome)
        rate = OFFERED_RATE if outcome.rate > OFFERED_RATE else outcome.rate * WHAT_IT_CAN_TAKE
        load = Load(self.server.port, source, connections=OFFERED_CONNECTIONS, ids=answers.no_ids)
        self.steady.append(load.offered(rate, steady_seconds))

    def row(self, rival: "Contestant") -> list[str]:
        """How it fared when all connections are always busy."""
        quantiles = [_quantile(self.saturated, share) for share in (0.5, 0.99)]
        ratio = self.saturation / rival.saturation if rival.saturation else 0.0
        errors = sum(one.errors for one in self.saturated)
        return [self.name, number(self.saturation), *quantiles, str(errors), f"{ratio:.2f}"]

    def steady_row(self) -> list[str]:
        """How long requests took at the steady rate; the worst is that of all turns."""
        rate = median(one.good / one.seconds for one in self.steady)
        quantiles = [_quantile(self.steady, share) for share in (0.5, 0.99)]
        worst = number(max(max(one.latencies, default=0.0) for one in self.steady) * 1e3)
        errors = sum(one.errors for one in self.steady)
        own = median(one.own_seconds / one.seconds for one in self.steady)
        return [self.name, number(rate), *quantiles, worst, str(errors), f"{own:.0%}"]


def _quantile(outcomes: list[Outcome], share: float) -> str:
    return number(median(percentile(sorted(one.latencies), share) * 1e3 for one in outcomes))


def verifying(run: TableRun) -> None:
    """Saturation and a steady rate, in turns."""
    options = run.options
    with psycopg.connect(run.place.live_url) as connection:
        found = connection.execute("SELECT serial_number FROM certificates_certificate LIMIT 1000")
        serials = [row[0] for row in found]
    with web.service(run.place) as service, web.plain_django(run.place) as plain_server:
        plain = Contestant("plain Django view, one row", plain_server, "/row/")
        ours = Contestant("GET /v1/verify/{serial}", service, "/v1/verify/")
        for turn in range(options.turns):
            for contestant in (plain, ours):
                contestant.measure(serials, options.seconds, options.offered)
                say(f"  … turn {turn + 1}, {contestant.name}: {contestant.saturated[-1].rate:,.0f}/s")
    _tell(run, [plain, ours])
    run.figures["verify_to_plain_view"] = ours.saturation / plain.saturation
    run.figures["verify_p99_ms"] = median(
        percentile(sorted(one.latencies), 0.99) * 1e3 for one in ours.steady
    )


def _tell(run: TableRun, contestants: list[Contestant]) -> None:
    turns, plain = f"medians of {run.options.turns} turns, two workers each", contestants[0]
    headings = ["reads at saturation", "1/s", "p50 ms", "p99 ms", "errors", "to plain Django"]
    run.tell(
        f"Verifying over HTTP, {CONNECTIONS} connections, {turns}",
        [headings, *(one.row(plain) for one in contestants)],
    )
    headings = ["reads at a steady rate", "1/s", "p50 ms", "p99 ms", "worst ms", "errors", "generator's core"]
    run.tell(
        f"{OFFERED_RATE:,.0f}/s offered for {run.options.offered:g} s, or what can be taken; {turns}",
        [headings, *(one.steady_row() for one in contestants)],
    )
