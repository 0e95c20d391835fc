"""Processor time of an event that clients send: web server, PostgreSQL, Valkey, on each kind of database."""

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Final

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

MICRO: Final = 1e6
CONNECTIONS: Final = 64
PARTS: Final = ("web server", "PostgreSQL", "Valkey")
GROUPS: Final = re.compile(r'^compliance_group_size_(count|sum)\{route="/v1/events"\} (\S+)', re.MULTILINE)


@dataclass(frozen=True)
class Pace:
    """How clients send: at so many events a second, or all their connections as fast as they are answered."""

    name: str
    rate: float | None = None

    def sent(self, load: Load, seconds: float) -> Outcome:
        return load.closed(seconds) if self.rate is None else load.offered(self.rate, seconds)


PACES: Final = (Pace("100 events/s", 100), Pace("500 events/s", 500), Pace(f"{CONNECTIONS} clients, busy"))


@dataclass
class Service:
    """A running web server on a kind of database, and the tenants' single events in turn by chance."""

    server: WebServer
    kind: str
    source: Callable[[], bytes]


@dataclass
class Requests:
    """Microseconds of each part for an event: by pace and kind, one for each turn.

    `callers`: by kind and tenant its API key and its agents.
    """

    ground: Ground
    callers: Mapping[str, Mapping[str, tuple[str, Sequence[str]]]]
    seconds: float
    turns: int
    costs: dict[tuple[str, str], list[list[float]]] = field(default_factory=dict)
    groups: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def measure(self) -> None:
        """Take turns between paces and kinds; the first turn warms up and does not count.

        Raises StepFailed where a request failed or an acknowledged event is not stored.
        """
        with ExitStack() as stack:
            services = [stack.enter_context(self._service(kind)) for kind in KINDS]
            for turn in range(self.turns + 1):
                for pace in PACES:
                    # Who comes first changes, so that a drift of the machine meets both.
                    for service in services if turn % 2 else reversed(services):
                        self._note(turn, pace, service)
                say(f"  … turn {turn} of {self.turns}")

    def ratio(self, pace: str) -> float:
        """Return how often the cost on plain PostgreSQL an event costs on Citus: the median of the turns."""
        return median(self._ratios(pace))

    def lines(self) -> list[str]:
        """Return the table."""
        rows = [["µs an event", "on", *PARTS, "together", "ratio", "least", "most", "events a group"]]
        for pace in PACES:
            for kind in KINDS:
                turns = self.costs.get((pace.name, kind), [])
                parts = [median(of_part) for of_part in zip(*turns, strict=True)]
                ratios = sorted(self._ratios(pace.name)) if kind == CITUS else []
                found = [median(ratios), ratios[0], ratios[-1]] if ratios else [None] * 3
                together, group = median([*map(sum, turns)]), median(self.groups.get((pace.name, kind), []))
                rows.append([pace.name, kind, *map(number, [*parts, together, *found, group])])
        return table(rows)

    def _ratios(self, pace: str) -> list[float]:
        turns = zip(self.costs[pace, CITUS], self.costs[pace, PLAIN], strict=True)
        return [sum(ours) / sum(plain) for ours, plain in turns]

    def _note(self, turn: int, pace: Pace, service: Service) -> None:
        """Send for a turn; every acknowledged event must be stored."""
        kind = service.kind
        load = Load(service.server.port, service.source, connections=CONNECTIONS, ids=answers.no_ids)
        stored, groups, began = self._stored(kind), _groups(service.server), self._processor_seconds(service)
        outcome = pace.sent(load, self.seconds)
        spent = [now - then for now, then in zip(self._processor_seconds(service), began, strict=True)]
        count, events = (now - then for now, then in zip(_groups(service.server), groups, strict=True))
        stored = self._stored(kind) - stored
        if outcome.errors or stored != outcome.good:
            found = f"{outcome.good} acknowledged, {stored} stored, {dict(outcome.failures)}"
            raise StepFailed(f"{kind}, {pace.name}: {found}", hint=f"read bench-citus-{kind}.log")
        if turn:
            cost = [seconds / outcome.good * MICRO for seconds in spent]
            self.costs.setdefault((pace.name, kind), []).append(cost)
            self.groups.setdefault((pace.name, kind), []).append(events / count)

    def _processor_seconds(self, service: Service) -> list[float]:
        """Return what each of `PARTS` has used."""
        valkey = self.ground.redis.running()
        return [
            _of_all(service.server.process.pid),
            self.ground.processor_seconds(service.kind),
            _of_all(valkey.pid) if valkey else 0.0,
        ]

    def _stored(self, kind: str) -> int:
        with self.ground.connected(kind) as connection:
            (found,) = connection.execute("SELECT count(*) FROM events_behaviorevent").fetchone() or (0,)
        return int(found)

    @contextmanager
    def _service(self, kind: str) -> Iterator[Service]:
        """Run a web worker with metrics, as it is deployed."""
        port, place = free_port(), Place(self.ground.servers)
        metrics = self.ground.folder / f"metrics-{kind}"
        metrics.mkdir()
        environment = self.ground.environment(kind) | {
            **NO_LIMIT,
            "BASE_URL": f"http://{HOST}:{port}",
            "METRICS_DIR": str(metrics),
            "METRICS_TOKEN": web.METRICS_TOKEN,
            "WEB_WORKERS": "1",
        }
        command = commands(f"{HOST}:{port}", environment)["web"]
        name = f"citus-{kind}"
        # Events need no HSM, which `/health/ready` asks.
        with web.running(name, command, environment, place, port=port, path="/health/live") as server:
            yield Service(server, kind, _mixed([*self.callers[kind].values()]))


def _mixed(callers: Sequence[tuple[str, Sequence[str]]]) -> Callable[[], bytes]:
    """Return requests of one event each, of tenants by chance."""
    sources = [Traffic(agents).single(key=key) for key, agents in callers]
    chance = random.Random(7)

    def source() -> bytes:
        return chance.choice(sources)()

    return source


def _groups(server: WebServer) -> tuple[float, float]:
    """Return how many groups of events the service has worked on, and how many events those held."""
    found = dict(GROUPS.findall(web.metrics_of(server)))
    return float(found.get("count", 0)), float(found.get("sum", 0))


def _of_all(root: int) -> float:
    return sum(map(machine.run_seconds, machine.descendants(root)))
