"""One run of `./run bench ingest`: its options, place, servers, traffic, ledger and report."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.harness import ledger
from bench.harness.ledger import Account, Ledger
from bench.harness.load import Load, Outcome
from bench.harness.place import Place
from bench.harness.report import Report
from bench.harness.traffic import Traffic
from bench.harness.web import WebServer
from compliance.localdev.console import say

CONNECTIONS = 64
WARM_SECONDS = 2.0


@dataclass
class IngestRun:
    """One run of the benchmark, from its servers to its report."""

    options: Namespace
    place: Place
    traffic: Traffic
    ledger: Ledger
    service: WebServer
    fastapi: WebServer | None = None
    report: Report = field(default_factory=Report)

    @property
    def key(self) -> str:
        return self.place.api_key

    def load(self, server: WebServer, *, connections: int = CONNECTIONS) -> Load:
        """Single events for a server."""
        return Load(server.port, self.traffic.single(key=self.key), connections=connections)

    def single(self, server: WebServer, seconds: float | None = None) -> Outcome:
        """Single events at saturation."""
        return self.load(server).closed(seconds or self.options.seconds)

    def checked(self, part: str, measure: Callable[[], list[Outcome]]) -> Account:
        """Measure the service, then look for every event it acknowledged."""
        since, session = ledger.now(), self.traffic.next_session()
        outcomes = measure()
        ids = [one for outcome in outcomes for one in outcome.ids]
        account = self.ledger.check(part, ids, since=since, session=session)
        say(f"  … {part}: {account.words}")
        return account


def failures_of(*outcomes: Outcome) -> str:
    """Failed requests in words; empty when there were none."""
    total: dict[str, int] = {}
    for outcome in outcomes:
        for why, count in outcome.failures.items():
            total[why] = total.get(why, 0) + count
    return ", ".join(f"{why}: {count:,}" for why, count in sorted(total.items()))
