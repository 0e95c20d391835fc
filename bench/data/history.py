"""Fills the events table with months of history, in the order in which it would have been received."""

import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

import psycopg

from bench.data.ledger import EVENTS
from bench.harness.place import Place
from compliance.localdev.console import say

CHUNK = 100_000
WRITERS = 2
DAYS = 120
"""How far back the history goes."""
MARGIN_SECONDS = 3_600
"""It ends so long before the present, where the scorer looks for an agent's recent events."""

# `moment` is in milliseconds; `r` are fresh random digits for each row.
FILL = f"""
INSERT INTO {EVENTS} (id, tenant_id, agent_id, action_type, risk_score, risk_band, occurred_at, received_at,
                      details, session_id, chain_id, reasons, model_version)
SELECT (lpad(to_hex(moment), 12, '0') || '7' || substr(r, 1, 3) || '8' || substr(r, 4, 15))::uuid,
       %(tenant)s, (%(agents)s::uuid[])[1 + floor(power(chance, 2) * %(count)s)::int],
       (ARRAY['api_call','api_call','api_call','api_call','data_access','data_access','data_access',
              'data_mutation','transaction_initiated','authentication_attempt'])[1 + floor(kind * 10)::int],
       score, CASE WHEN score < 0.3 THEN 'low' WHEN score < 0.85 THEN 'medium' ELSE 'high' END,
       to_timestamp(moment / 1000.0 - chance * 2), to_timestamp(moment / 1000.0),
       jsonb_build_object('tool', 'search_orders', 'table', 'positions', 'rows', floor(kind * 40)),
       'history-' || substr(r, 1, 8), NULL, '[]'::jsonb, 'history'
FROM (SELECT (%(first)s::bigint + n * %(step)s::float8)::bigint AS moment, md5(random()::text) AS r,
             random() AS chance, random() AS kind,
             least(0.99, 0.2 * random() + power(greatest(random(), 0.01), 40)) AS score
      FROM generate_series(0, %(rows)s - 1) AS n) AS made
"""

PAGE = f"""
SELECT id, agent_id, action_type, risk_score, risk_band, occurred_at, received_at, details, session_id,
       chain_id, reasons, model_version
FROM {EVENTS} WHERE tenant_id = %s AND occurred_at < %s AND {{}} ORDER BY occurred_at DESC, id DESC LIMIT 51
"""


@dataclass
class History:
    """A history of `total` events of these agents, of which `filled` are there by now."""

    place: Place
    agents: Sequence[str]
    total: int
    filled: int = 0
    end: float = field(default_factory=lambda: time.time() - MARGIN_SECONDS)

    @property
    def start(self) -> float:
        """When the first event was received, in Unix time."""
        return self.end - DAYS * 86_400

    def at(self, number: float) -> float:
        """When event `number` of the history was received, in Unix time."""
        return self.start + DAYS * 86_400 * number / self.total

    def make_partitions(self) -> None:
        """Have a partition for each span of the history: one event a day shows that it is wanted."""
        self._insert(0, DAYS, step=86_400_000)
        self.place.maintain_partitions()

    def fill(self, size: int) -> None:
        """Go on until `size` events are there."""
        already, step = self.filled, DAYS * 86_400_000 / self.total
        chunks = [(at, min(CHUNK, size - at)) for at in range(already, size, CHUNK)]
        began = time.monotonic()
        with ThreadPoolExecutor(WRITERS) as pool:
            for number, rows in enumerate(pool.map(lambda chunk: self._insert(*chunk, step=step), chunks), 1):
                self.filled += rows
                if number % 10 == 0 or self.filled == size:
                    pace = (self.filled - already) / (time.monotonic() - began)
                    say(f"  … {self.filled:,} rows, {pace:,.0f} a second")
        with psycopg.connect(self.place.live_url, autocommit=True) as connection:
            connection.execute(f"VACUUM ANALYZE {EVENTS}")
            # Else the fill's own checkpoint is written while the next measurement runs.
            connection.execute("CHECKPOINT")

    def moments(self, count: int, *, seed: int) -> list[datetime]:
        """Random depths of what is there."""
        chance = random.Random(seed)
        return [datetime.fromtimestamp(self.at(chance.random() * self.filled), UTC) for _ in range(count)]

    def page_latencies(
        self, moments: Sequence[datetime], conditions: Sequence[Mapping[str, str]]
    ) -> list[float]:
        """Seconds that PostgreSQL alone takes for the rows of each page, ascending."""
        found = []
        with psycopg.connect(self.place.live_url, autocommit=True) as connection:
            for moment, condition in zip(moments, conditions, strict=True):
                query = PAGE.format(" AND ".join([*(f"{column} = %s" for column in condition), "true"]))
                began = time.perf_counter()
                connection.execute(
                    query, [self.place.tenant_id, moment, *condition.values()], prepare=True
                ).fetchall()
                found.append(time.perf_counter() - began)
        return sorted(found)

    def _insert(self, number: int, rows: int, *, step: float) -> int:
        with psycopg.connect(self.place.live_url) as connection:
            connection.execute("SET LOCAL synchronous_commit = off")
            given = {
                "tenant": self.place.tenant_id,
                "agents": list(self.agents),
                "count": len(self.agents),
                "first": int(self.start * 1000 + number * step),
                "step": step,
                "rows": rows,
            }
            connection.execute(FILL, given)
        return rows
