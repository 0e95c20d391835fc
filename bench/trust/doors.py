"""The endpoints over HTTP: at saturation, and at a steady rate below it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.harness import answers, web
from bench.harness.load import Load, Outcome, Source
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.harness.web import WebServer
from bench.trust import calls
from bench.trust.limits import Limits
from bench.trust.run import TrustRun
from compliance.localdev.console import say

CONNECTIONS = 32
OFFERED_CONNECTIONS = 64
WARM_SECONDS = 2.0
HEADINGS = [
    *("", "1/s", "target", "p50 ms", "p99 ms", "errors", "to peer", "of limit"),
    *("offered", "p50 ms", "p99 ms", "worst ms", "errors", "target ms"),
]


@dataclass(frozen=True)
class Door:
    """One kind of request, what it is compared with, and what it must hold."""

    name: str
    source: Callable[[TrustRun, Sequence[str]], Source]
    offered: float
    """Requests a second of the steady rate."""
    rate: float | None = None
    p99_ms: float | None = None
    peer: str | None = None
    """The path of FastAPI that does the same."""
    limit: str | None = None
    """The figure of `Limits` that no service can exceed."""


@dataclass
class Turns:
    """What came of each turn of one door."""

    saturated: list[Outcome] = field(default_factory=list)
    steady: list[Outcome] = field(default_factory=list)

    def take(self, server: WebServer, source: Source, door: Door, run: TrustRun) -> None:
        """One turn, after some seconds to warm up."""
        for span in (WARM_SECONDS, run.options.seconds):
            outcome = Load(server.port, source, connections=CONNECTIONS, ids=answers.no_ids).closed(span)
        self.saturated.append(outcome)
        load = Load(server.port, source, connections=OFFERED_CONNECTIONS, ids=answers.no_ids)
        self.steady.append(load.offered(door.offered, run.options.offered))

    @property
    def rate(self) -> float:
        return median(one.rate for one in self.saturated)

    @property
    def p99_ms(self) -> float:
        return _quantile(self.steady, 0.99)


DOORS = (
    Door("issue", calls.issuing, 100, 500, 20, "/issue", "hsm"),
    Door("exchange", calls.exchanging, 100, 500, 20, None, "hsm"),
    Door("exchange with a DPoP proof", calls.exchanging_proven, 100, 500, 20, None, "hsm"),
    Door("verify", calls.verifying, 1_000, 2_500, None, "/verify", "ecdsa"),
    Door("introspect a chain of eight", calls.introspecting, 100, None, 15),
    Door("sign a message", calls.signing, 100),
)


def doors(run: TrustRun, limits: Limits, agents: Sequence[str]) -> None:
    """Every door in turn, beside FastAPI with PyJWT where that does the same."""
    token = calls.token_of(run, agents[0], [calls.ROOT])
    jwks = run.done("GET", "/.well-known/jwks.json")
    rows = [HEADINGS]
    with web.fastapi_trust(run.place, jwks=jwks, issuer=run.base_url) as peer_server:
        for door in DOORS:
            status, _ = run.call("POST", "/oauth/introspect") if "introspect" in door.name else (200, None)
            if status == 404:
                continue
            ours, peer = Turns(), Turns()
            source = door.source(run, agents)
            for turn in range(run.options.turns):
                if door.peer is not None:
                    body = f'{{"token":"{token}"}}'
                    peer.take(peer_server, calls.in_turn([calls.request(door.peer, body)]), door, run)
                ours.take(run.service, source, door, run)
                say(f"  … turn {turn + 1}, {door.name}: {ours.saturated[-1].rate:,.0f}/s")
            rows.append(_row(door, ours, peer, limits))
            run.figures[f"{door.name}, 1/s"] = ours.rate
            run.figures[f"{door.name}, p99 ms at {door.offered:g}/s"] = ours.p99_ms
    run.tell(f"Over HTTP, {CONNECTIONS} connections; medians of {run.options.turns} turns", rows)


def _row(door: Door, ours: Turns, peer: Turns, limits: Limits) -> list[str]:
    limit = limits.get(door.limit or "")
    worst = max(max(one.latencies, default=0.0) for one in ours.steady) * 1e3
    return [
        door.name,
        number(ours.rate),
        number(door.rate),
        *(number(_quantile(ours.saturated, share)) for share in (0.5, 0.99)),
        errors_of(ours.saturated),
        f"{ours.rate / peer.rate:.2f}" if peer.saturated and peer.rate else "·",
        f"{ours.rate / limit:.0%}" if limit else "·",
        f"{door.offered:g}/s",
        *(number(_quantile(ours.steady, share)) for share in (0.5, 0.99)),
        number(worst),
        errors_of(ours.steady),
        number(door.p99_ms),
    ]


def errors_of(outcomes: list[Outcome]) -> str:
    """How many, with their statuses."""
    total = sum(one.errors for one in outcomes)
    kinds = sorted({kind for one in outcomes for kind in one.failures})
    return f"{total} ({', '.join(kinds)})" if total else "0"


def _quantile(outcomes: list[Outcome], share: float) -> float:
    return median(percentile(sorted(one.latencies), share) * 1e3 for one in outcomes)
