"""One run of `./run bench ingest`: its options, place, servers, traffic, ledger and report."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.data import ledger
from bench.data.ledger import Account, Ledger
from bench.harness.load import Load, Outcome
from bench.harness.place import Place
from bench.harness.report import Report
from bench.harness.traffic import Traffic
from bench.harness.web import WebServer
from bench.rulers.pgbench import Clients, PgBench
from compliance.localdev.console import say

CONNECTIONS = 64
WARM_SECONDS = 2.0
UNTRIED = Clients(single=16, batch=2, generated=2)


@dataclass(frozen=True)
class IngestOptions:
    """What the person asked for; seconds of each measurement, sizes, and which parts."""

    agents: int
    seconds: float
    repetitions: int
    offered_rate: float
    offered_seconds: float
    batch_size: int
    batch_connections: int
    growth: tuple[float, ...]
    soak: float
    soak_window: float
    only: frozenset[str]
    alone: bool
    json: Path | None

    def wants(self, part: str) -> bool:
        return part in self.only


@dataclass
class IngestRun:
    """One run of the benchmark, from its servers to its report."""

    options: IngestOptions
    place: Place
    traffic: Traffic
    ledger: Ledger
    service: WebServer
    pgbench: PgBench | None = None
    fastapi: WebServer | None = None
    drf: WebServer | None = None
    clients: Clients = UNTRIED
    report: Report = field(default_factory=Report)
    is_flat: bool = True

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
        account = self.ledger.check(
            part, [one for outcome in outcomes for one in outcome.ids], since=since, session=session
        )
        say(f"  … {part}: {account.words}")
        return account


def failures_of(*outcomes: Outcome) -> str:
    """Failed requests in words; empty when there were none."""
    total: dict[str, int] = {}
    for outcome in outcomes:
        for why, count in outcome.failures.items():
            total[why] = total.get(why, 0) + count
    return ", ".join(f"{why}: {count:,}" for why, count in sorted(total.items()))
