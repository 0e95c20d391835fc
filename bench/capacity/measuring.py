"""Each operation done many times, by turns, while the meter runs."""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import psycopg
import redis

from bench.capacity import model
from bench.capacity.model import Cost, Costs
from bench.capacity.processors import Meter, roots_of
from bench.data import outbox
from bench.data.certifying import certified, take_over_pool
from bench.data.outbox import Outbox
from bench.harness import answers, web
from bench.harness.load import Load
from bench.harness.place import Place
from bench.harness.stats import median
from bench.harness.traffic import Traffic, reads
from bench.harness.web import WebServer
from compliance.localdev.console import StepFailed, say, step
from compliance.localdev.servers import processes

CONNECTIONS, BATCH_CONNECTIONS, CLIENTS, ENDPOINTS = 64, 4, 4, 20
BATCH = 1_000
NEW_KEYS = 8  # generated in a turn
SETTLE_SECONDS = 60.0
IDLE_SECONDS, IDLE_SHARE = 2.0, 0.05
EVENTS_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint FROM pg_partition_tree('events_behaviorevent')
"""
LATER = {
    model.SUMMED: "summed",
    model.POOLED: "pooled",
    model.COLLECTED: "collected",
    model.ARCHIVED: "archived",
}
DATABASE_SIZE = "SELECT pg_database_size(current_database())"


@dataclass(frozen=True)
class Options:
    """How long and how often."""

    processes: tuple[int, ...]
    turns: int
    seconds: float
    agents: int
    certificates: int
    deliveries: int

    @property
    def certificates_in_all(self) -> int:
        return len(self.processes) * (self.turns + 1) * self.certificates


@dataclass
class Measuring:
    """One run: costs of each turn, by operation and number of web processes."""

    place: Place
    options: Options
    connection: psycopg.Connection
    turns: dict[str, dict[int, list[Cost]]] = field(default_factory=lambda: defaultdict(dict))
    sizes: dict[str, float] = field(default_factory=dict)
    failures: int = 0

    def run(self) -> Costs:
        """Measure everything."""
        with step(f"{self.options.certificates_in_all} keys in the pool"):
            take_over_pool(self.place, self.options.certificates_in_all)
        self.traffic = Traffic(self.place.agents(self.options.agents))
        size = self._number(EVENTS_SIZE)
        for count in self.options.processes:
            with self._servers(count) as (server, meter):
                self._requests(count, server, meter)
        stored = self._number("SELECT count(*) FROM events_behaviorevent")
        self.sizes["event_disk"] = (self._number(EVENTS_SIZE) - size) / stored
        self.sizes["agent_state"] = self._valkey_bytes() / self.options.agents
        with self._servers(1) as (server, meter):
            self._keys(meter)
            self._deliveries(server, meter)
            self._later(meter)
        return self._costs()

    # --- What is measured ---------------------------------------------------------------------------

    def _requests(self, count: int, server: WebServer, meter: Meter) -> None:
        """Measure events, batches and verifications, then certificates, with so many web processes."""
        serials = self._serials()
        load: dict[str, tuple[Load, int]] = {
            model.EVENT: (self._load(server, self.traffic.single(key=self.place.api_key)), 1),
            model.BATCHED: (
                self._load(
                    server, self.traffic.batch(BATCH, key=self.place.api_key), connections=BATCH_CONNECTIONS
                ),
                BATCH,
            ),
            model.VERIFICATION: (self._load(server, reads(serials, key="")), 1),
        }
        for turn in range(self.options.turns + 1):
            for operation, (one, each) in load.items():
                self._note(operation, count, meter, partial(self._asked, one, each), turn)
            self._certificates(count, server, meter, turn)
            say(f"  … turn {turn} of {self.options.turns}")

    def _certificates(self, count: int, server: WebServer, meter: Meter, turn: int) -> None:
        """Register and certify, and wait until the audit log has sealed it."""
        size = self._number(DATABASE_SIZE)

        def work() -> int:
            certified(self.place, server, self.options.certificates, CLIENTS)
            self._settle("SELECT count(*) FROM auditlog_pendingentry")
            return self.options.certificates

        self._note(model.CERTIFICATE, count, meter, work, turn)
        self.sizes["grown"] = self.sizes.get("grown", 0.0) + self._number(DATABASE_SIZE) - size

    def _keys(self, meter: Meter) -> None:
        for turn in range(self.options.turns + 1):

            def work() -> int:
                wanted = self._number("SELECT count(*) FROM certificates_pooledkey") + NEW_KEYS
                self.place.manage(
                    "key_pool_fill", "--environment", "live", "--size", str(round(wanted)), kind="bench"
                )
                return NEW_KEYS

            self._note(model.KEY, 1, meter, work, turn)

    def _deliveries(self, server: WebServer, meter: Meter) -> None:
        """Measure deliveries from their insert to the row of their attempt."""
        with outbox.receiver(self.place) as receiver, outbox.sender(self.place) as sender:
            box = Outbox(self.place, receiver)
            hooks = box.register([f"/ok/{number}" for number in range(ENDPOINTS)])
            box.fill(hooks, ENDPOINTS)
            if len(box.take_until(ENDPOINTS, seconds=SETTLE_SECONDS)) < ENDPOINTS:
                raise StepFailed("the sender sends nothing", hint="read bench-sender.log")
            meter = Meter(roots_of(self.place, server, sender=sender.pid), self.connection)
            for turn in range(self.options.turns + 1):

                def work() -> int:
                    box.fill(hooks, self.options.deliveries)
                    self._settle(
                        "SELECT count(*) FROM webhooks_delivery WHERE status IN ('pending', 'in_flight')"
                    )
                    return self.options.deliveries

                self._note(model.DELIVERY, 1, meter, work, turn)

    def _later(self, meter: Meter) -> None:
        """Measure what becomes of events afterwards: once, as each event is worked on once."""
        for operation, part in LATER.items():
            found: dict[str, float] = {}

            def work(part: str = part, found: dict[str, float] = found) -> int:
                found |= self._child(part)
                return round(found["count"])

            cost = meter.cost_of(work)
            own = {model.WORKER: found["seconds"] / found["count"] * model.MICRO}
            self.turns[operation][1] = [Cost({**cost.processor_us, **own}, cost.wal_bytes)]
            if operation == model.ARCHIVED:
                self.sizes["event_archived"] = found["bytes"] / found["count"]

    # --- How ----------------------------------------------------------------------------------------

    @contextmanager
    def _servers(self, count: int) -> Iterator[tuple[WebServer, Meter]]:
        """So many web processes and a worker."""
        settings = {"WEB_WORKERS": str(count), "KEY_POOL_SIZE": "0", "KEY_POOL_SIZE_TEST": "0"}
        environment = self.place.environment() | settings
        command = web.part("worker", self.place, port=0)
        with (
            web.service(self.place, settings=settings) as server,
            web.started("worker", command, environment, self.place) as worker,
        ):
            meter = Meter(roots_of(self.place, server, worker=worker.pid), self.connection)
            with step(f"{count} web process{'es' if count > 1 else ''} and a worker"):
                self._rest(meter)
            yield server, meter

    def _rest(self, meter: Meter) -> None:
        """Wait until the worker has imported all it needs."""

        def is_idle() -> bool:
            before = meter.read().seconds[model.WORKER]
            time.sleep(IDLE_SECONDS)
            return meter.read().seconds[model.WORKER] - before < IDLE_SECONDS * IDLE_SHARE

        processes.wait_until(is_idle, seconds=SETTLE_SECONDS)

    def _note(self, operation: str, count: int, meter: Meter, work: Callable[[], int], turn: int) -> None:
        """Add a turn's cost; turn 0 warms up and does not count."""
        cost = meter.cost_of(work)
        if turn:
            self.turns[operation].setdefault(count, []).append(cost)

    def _load(
        self, server: WebServer, source: Callable[[], bytes], *, connections: int = CONNECTIONS
    ) -> Load:
        return Load(server.port, source, connections=connections, ids=answers.no_ids)

    def _asked(self, load: Load, each: int) -> int:
        """Keep the connections busy; return the operations done, so many with each request."""
        outcome = load.closed(self.options.seconds)
        self.failures += outcome.errors
        return outcome.good * each

    def _child(self, part: str) -> dict[str, float]:
        folder = self.place.folder / "archive"
        folder.mkdir(exist_ok=True)
        environment = self.place.environment() | {
            "EVENT_ARCHIVE_DIR": str(folder),
            "LOG_LEVEL": "WARNING",
        }
        command = [sys.executable, "-m", "bench.capacity.later", part]
        root = self.place.servers.layout.root
        done = subprocess.run(command, env=environment, cwd=root, stdout=subprocess.PIPE, check=True)
        for path in folder.iterdir():
            path.unlink()
        return dict(json.loads(done.stdout))

    def _settle(self, waiting: str) -> None:
        if not processes.wait_until(lambda: self._number(waiting) == 0, seconds=SETTLE_SECONDS, pause=0.05):
            raise StepFailed(f"still waiting: {waiting}", hint="read the logs under .local/log")

    def _number(self, statement: str) -> float:
        (found,) = self.connection.execute(statement).fetchone() or (0,)
        return float(found)

    def _serials(self) -> list[str]:
        rows = self.connection.execute("SELECT serial_number FROM certificates_certificate LIMIT 1000")
        return [f"/v1/verify/{row[0]}" for row in rows]

    def _valkey_bytes(self) -> float:
        client = redis.Redis.from_url(os.environ["REDIS_URL"])
        keys = client.scan_iter(f"{self.place.environment()['SERVICE_NAME']}:*", count=1_000)
        return float(sum(client.memory_usage(key) or 0 for key in keys))

    def _costs(self) -> Costs:
        return Costs(
            operations={
                name: {count: middle_of(costs) for count, costs in by_count.items()}
                for name, by_count in self.turns.items()
            },
            event_disk=self.sizes["event_disk"],
            agent_disk=self.sizes["grown"] / self.options.certificates_in_all,
            agent_state=self.sizes["agent_state"],
            event_archived=self.sizes["event_archived"],
        )


def middle_of(costs: list[Cost]) -> Cost:
    """Return the medians of several turns."""
    roles: Mapping[str, float] = costs[0].processor_us
    return Cost(
        {role: median([one.processor_us[role] for one in costs]) for role in roles},
        median([one.wal_bytes for one in costs]),
    )
