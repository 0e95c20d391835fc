"""Processor time of an event that clients send: web server, PostgreSQL, Valkey, on each kind of database."""

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from bench.citus.costs import MICRO
from bench.citus.ground import CITUS, KINDS, PLAIN, Ground
from bench.harness import answers, machine, web
from bench.harness.load import Load, Outcome
from bench.harness.place import NO_LIMIT, Place
from bench.harness.report import number, table
from bench.harness.stats import median
from bench.harness.traffic import Traffic
from bench.harness.web import WebServer
from compliance.localdev.console import StepFailed, say
from compliance.localdev.parts import commands
from compliance.localdev.ports import HOST, free_port
from compliance.observing.request_counts import FLUSH_SECONDS

CONNECTIONS: Final = 64
COMPONENTS: Final = ("web server", "PostgreSQL", "Valkey")
DATABASE: Final = COMPONENTS.index("PostgreSQL")
_GROUPS: Final = re.compile(r'^compliance_group_size_(count|sum)\{route="/v1/events"\} (\S+)', re.MULTILINE)
_STORED: Final = """
SELECT count(*), count(DISTINCT session_id) FROM events_behaviorevent WHERE session_id LIKE 'bench-%'
"""


@dataclass(frozen=True)
class Arrivals:
    """How events come: so many a second, or from all connections as fast as they are answered."""

    name: str
    rate: float | None = None

    def sent(self, load: Load, seconds: float) -> Outcome:
        return load.closed(seconds) if self.rate is None else load.offered(self.rate, seconds)


ARRIVALS: Final = (Arrivals("500 events/s", 500), Arrivals(f"{CONNECTIONS} clients, busy"))


@dataclass(frozen=True)
class Turn:
    """Microseconds of each component for an event, events a second, and events in a group on average."""

    costs: Sequence[float]
    rate: float
    group: float

    @property
    def together(self) -> float:
        return sum(self.costs)


@dataclass
class Running:
    """A web server on a kind of database; `source` makes requests, `counting` counts rows."""

    server: WebServer
    kind: str
    source: Callable[[], bytes]
    counting: "psycopg.Connection[tuple[Any, ...]]"


@dataclass
class RequestCosts:
    """The turns by arrivals and kind; `callers`: for each kind the API key and the agents of each tenant."""

    ground: Ground
    callers: Mapping[str, Sequence[tuple[str, Sequence[str]]]]
    seconds: float
    turns: int
    found: dict[tuple[str, str], list[Turn]] = field(default_factory=dict)

    def measure(self) -> None:
        """Take turns between arrivals and kinds; the first turn warms up and does not count.

        Raises StepFailed where a request failed, or the stored events are not those acknowledged.
        """
        with ExitStack() as stack:
            running = [stack.enter_context(self._running(kind)) for kind in KINDS]
            for turn in range(self.turns + 1):
                for place, arrivals in enumerate(ARRIVALS):
                    # Who comes first changes, so that a drift of the machine meets both.
                    for one in running if (turn + place) % 2 else reversed(running):
                        measured = self._measured(arrivals, one)
                        if turn:
                            self.found.setdefault((arrivals.name, one.kind), []).append(measured)
                say(f"  … turn {turn} of {self.turns}")

    def ratios(self, arrivals: str) -> list[float]:
        """Return how often all that an event costs on plain PostgreSQL it costs on Citus, in each turn."""
        return self._ratios(arrivals, lambda turn: turn.together)

    def database_ratios(self, arrivals: str) -> list[float]:
        """Return the same of PostgreSQL alone."""
        return self._ratios(arrivals, lambda turn: turn.costs[DATABASE])

    def lines(self) -> list[str]:
        """Return the table: medians of the turns, ratios with the least and the most."""
        headings = [*COMPONENTS, "together", "ratio", "PostgreSQL's", "events/s", "events a group"]
        rows = [["µs an event", "on", *headings]]
        for arrivals in ARRIVALS:
            for kind in KINDS:
                turns = self.found[arrivals.name, kind]
                costs = [*zip(*(turn.costs for turn in turns), strict=True), [one.together for one in turns]]
                both = (self.ratios, self.database_ratios) if kind == CITUS else ()
                ratios = [_spread(ratio(arrivals.name)) for ratio in both] or ["", ""]
                others = [median([turn.rate for turn in turns]), median([turn.group for turn in turns])]
                cells = [*(number(median(of_part)) for of_part in costs), *ratios, *map(number, others)]
                rows.append([arrivals.name, kind, *cells])
        return table(rows)

    def _ratios(self, arrivals: str, figure: Callable[[Turn], float]) -> list[float]:
        turns = zip(self.found[arrivals, CITUS], self.found[arrivals, PLAIN], strict=True)
        return [figure(ours) / figure(plain) for ours, plain in turns]

    def _measured(self, arrivals: Arrivals, one: Running) -> Turn:
        """Send for a turn. What counts rows and groups lies outside the two readings of the processors."""
        load = Load(one.server.port, one.source, connections=CONNECTIONS, ids=answers.no_ids)
        rows, groups = self._rows(one), _groups(one.server)
        used = self._processor_seconds(one)
        outcome = arrivals.sent(load, self.seconds)
        spent = [now - before for now, before in zip(self._processor_seconds(one), used, strict=True)]
        count, events = (now - before for now, before in zip(_groups(one.server), groups, strict=True))
        stored = self._rows(one) - rows
        if outcome.errors or not outcome.good == stored == events:
            text = f"{outcome.good} acknowledged, {stored} stored, {events:.0f} by the fast path"
            said = f"{one.kind}, {arrivals.name}: {text}, failures: {dict(outcome.failures)}"
            raise StepFailed(said, hint=f"read .local/log/bench-{one.server.name}.log")
        return Turn([seconds / outcome.good * MICRO for seconds in spent], outcome.rate, events / count)

    def _processor_seconds(self, one: Running) -> list[float]:
        """Return what each of `COMPONENTS` has used, with what each started and what of that has ended."""
        valkey = self.ground.redis.running()
        roots = [[one.server.process.pid], self.ground.roots(one.kind), [valkey.pid] if valkey else []]
        return [sum(map(machine.family_spent_seconds, of_component)) for of_component in roots]

    def _rows(self, one: Running) -> int:
        """Return how many events are stored. Raises StepFailed if one is stored twice."""
        rows, sessions = one.counting.execute(_STORED).fetchone() or (0, 0)
        if rows != sessions:
            raise StepFailed(f"{one.kind}: {rows - sessions} events are stored twice", hint="read the rows")
        return int(rows)

    @contextmanager
    def _running(self, kind: str) -> Iterator[Running]:
        """Run a web worker with metrics, and a connection whose backends last as long."""
        port, name = free_port(), f"citus-{kind}"
        metrics = self.ground.folder / f"metrics-{kind}"
        metrics.mkdir()
        environment = self.ground.environment(kind) | {
            **NO_LIMIT,
            "BASE_URL": f"http://{HOST}:{port}",
            "METRICS_DIR": str(metrics),
            "METRICS_TOKEN": web.METRICS_TOKEN,
            "WEB_WORKERS": "1",
        }
        command, place = commands(f"{HOST}:{port}", environment)["web"], Place(self.ground.servers)
        with (
            self.ground.connected(kind) as counting,
            # Events need no HSM, which `/health/ready` asks.
            web.running(name, command, environment, place, port=port, path="/health/live") as server,
        ):
            yield Running(server, kind, _mixed(self.callers[kind]), counting)


def _spread(ratios: Sequence[float]) -> str:
    return f"{median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"


def _mixed(callers: Sequence[tuple[str, Sequence[str]]]) -> Callable[[], bytes]:
    """Return requests of one event each, of a tenant chosen at random."""
    sources = [Traffic(agents).single(key=key) for key, agents in callers]
    chance = random.Random(7)

    def source() -> bytes:
        return chance.choice(sources)()

    return source


def _groups(server: WebServer) -> tuple[float, float]:
    """Return how many groups of events the service has worked on, and how many events those held."""
    time.sleep(2 * FLUSH_SECONDS)  # until the last are counted
    found = dict(_GROUPS.findall(web.metrics_of(server)))
    return float(found.get("count", 0)), float(found.get("sum", 0))
