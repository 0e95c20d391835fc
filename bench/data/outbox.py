"""Webhooks and their deliveries in a benchmark's database, and when a receiver got them."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.request import urlopen

import psycopg

from bench.harness import web
from bench.harness.place import Place
from bench.harness.web import WebServer
from compliance.localdev.ports import HOST, free_port

# Every webhook in turn gets a message of its own, due from a second before on.
FILL = """
WITH made AS (
    INSERT INTO webhooks_message (id, tenant_id, event, body, created_at)
    SELECT id, %(tenant)s, 'certificate.revoked', convert_to(format(
        '{"id":"%%s","event":"certificate.revoked","created_at":"2026-11-20T09:15:00.123456Z","data":{'
        '"serial_number":"5f1c0a9e4b7d4c2f8e6a1b3c5d7e9f01",'
        '"agent_id":"0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b10",'
        '"revocation_reason":"Key compromised","revoked_at":"2026-11-20T09:15:00.123456Z"}}',
        id), 'UTF8'), now()
    FROM (SELECT gen_random_uuid() AS id FROM generate_series(1, %(count)s)) AS ids
    RETURNING id
)
INSERT INTO webhooks_delivery (id, tenant_id, webhook_id, message_id, status, trigger, attempt_count,
                               max_attempts, next_attempt_at, created_at)
SELECT gen_random_uuid(), %(tenant)s, (%(hooks)s::uuid[])[1 + row_number() OVER () %% %(webhooks)s], id,
       'pending', 'event', 0, 4, now() - interval '1 second', now()
FROM made
"""


@dataclass(frozen=True)
class Taken:
    """One delivery as the receiver saw it: Unix time of its first byte."""

    event_id: str
    at: float
    path: str


@dataclass
class Outbox:
    """The deliveries of a run."""

    place: Place
    receiver: WebServer

    def register(self, paths: Sequence[str], *, pace: str = "quick") -> list[str]:
        """A webhook for each path of the receiver; their ids."""
        urls = [f"http://{HOST}:{self.receiver.port}{path}" for path in paths]
        command = [sys.executable, "-m", "bench.data.hooks", self.place.tenant_id, *urls]
        environment = self.place.environment() | {"LOG_LEVEL": "WARNING"}
        root = self.place.servers.layout.root
        done = subprocess.run(
            command, env=environment, cwd=root, check=True, stdout=subprocess.PIPE, text=True
        )
        ids = done.stdout.split()
        self.execute("UPDATE webhooks_webhook SET pace = %s WHERE id = ANY(%s::uuid[])", [pace, ids])
        return ids

    def fill(self, webhooks: Sequence[str], count: int) -> None:
        """So many due deliveries, over these webhooks in turn."""
        given = {
            "tenant": self.place.tenant_id,
            "count": count,
            "hooks": list(webhooks),
            "webhooks": len(webhooks),
        }
        self.execute(FILL, given)
        self.execute("VACUUM ANALYZE webhooks_delivery")

    def clear(self) -> None:
        """No webhooks, no deliveries."""
        self.execute("TRUNCATE webhooks_attempt, webhooks_delivery, webhooks_message, webhooks_webhook")

    def created(self) -> dict[str, float]:
        """When each event was made, in Unix time."""
        with psycopg.connect(self.place.live_url) as connection:
            rows = connection.execute("SELECT id::text, extract(epoch FROM created_at) FROM webhooks_message")
            return {str(row[0]): float(row[1]) for row in rows}

    def taken(self) -> list[Taken]:
        """What the receiver took since it was last asked."""
        with urlopen(f"http://{HOST}:{self.receiver.port}/taken", timeout=10) as response:
            lines = response.read().decode().splitlines()
        parts = (line.split(" ") for line in lines)
        return [Taken(event_id, float(at), path) for event_id, at, path in parts]

    def take_until(self, count: int, *, seconds: float) -> list[Taken]:
        """What the receiver takes until it is so many, or the time is over."""
        found: list[Taken] = []
        until = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < until:
            time.sleep(0.5)
            found += self.taken()
        return found

    def execute(self, statement: str, values: object = None) -> None:
        with psycopg.connect(self.place.live_url, autocommit=True) as connection:
            connection.execute(statement, values)  # type: ignore[call-overload]


@contextmanager
def receiver(place: Place) -> Iterator[WebServer]:
    """A receiver in a process of its own."""
    port = free_port()
    command = [sys.executable, "-m", "bench.rulers.receiver", str(port)]
    with web.running("receiver", command, place.environment(), place, port=port, path="/taken") as server:
        yield server


@contextmanager
def sender(place: Place) -> Iterator[subprocess.Popen[bytes]]:
    """A sender as `./run` starts it."""
    command = web.part("sender", place, port=0)
    with web.started("sender", command, place.environment(), place) as process:
        yield process
