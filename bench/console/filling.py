"""Fills the live database of a run: tenants, agents, events, verdicts, webhooks, incidents, the audit log."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.console import rows
from bench.harness.place import Place
from compliance.localdev.console import say, step

CHUNK = 250_000
WRITERS = 2
ONE_A_DAY = """
INSERT INTO events_behaviorevent (id, tenant_id, agent_id, action_type, risk_score, risk_band, occurred_at,
    received_at, details, reasons, model_version)
SELECT pg_temp.id7(moment), %(tenant)s, (SELECT id FROM agents_agent LIMIT 1), 'api_call', 0, 'low', moment,
    moment, '{}', '[]', 'bench'
FROM generate_series(now() - interval '90 days', now(), interval '1 day') AS moment
"""
OF_PEOPLE = ("REVIEWS", "QUEUES", "COMMENTS", "INCIDENTS", "TIMELINES", "AUDIT")


@dataclass(frozen=True)
class Sizes:
    """How many rows of each kind; all else follows from them."""

    agents: int
    events: int
    entries: int
    tenants: int


def fill(place: Place, sizes: Sizes, people: list[str]) -> None:
    """Fill the database; `people` are the actor ids of those who review, comment and own."""
    given: dict[str, Any] = {
        "tenant": place.tenant_id,
        "tenants": sizes.tenants,
        "agents": sizes.agents,
        "entries": sizes.entries,
        "people": people,
        "many": len(people),
        "count": sizes.agents,
    }
    _run(place, given, "tenants, agents and certificates", "TENANTS", "AGENTS", "ACTIVE_CERTIFICATES",
         "REVOKED_CERTIFICATES", "ISSUANCES", "HOLDS", "LISTS", "KEYS", "IDEMPOTENCY")  # fmt: skip
    _events(place, sizes.events, given)
    _run(place, given, "verdicts, inbox and daily sums", "REVIEWS", "OPEN", "MARKS", "QUEUES", "COMMENTS",
         "RISK_DAYS", "REPORTS")  # fmt: skip
    _run(place, given, "incidents and webhooks", "INCIDENTS", "TIMELINES", "WEBHOOKS", "MESSAGES",
         "DELIVERIES", "ATTEMPTS")  # fmt: skip
    _run(place, given, f"{sizes.entries:,} audit entries", "AUDIT")


def settle(place: Place) -> None:
    """Have statistics and visibility maps as autovacuum leaves them, and nothing left to write."""
    with step("statistics"), psycopg.connect(place.live_url, autocommit=True) as connection:
        connection.execute("SET statement_timeout = 0")
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _run(place: Place, given: dict[str, Any], title: str, *names: str) -> None:
    with step(title), _connected(place) as connection:
        for name in names:
            connection.execute(getattr(rows, name), given)
            if name in ("AGENTS", "REVIEWS", "MESSAGES", "DELIVERIES", "ACTIVE_CERTIFICATES"):
                connection.execute("ANALYZE")


def _events(place: Place, total: int, given: dict[str, Any]) -> None:
    """Have a partition for each month, then the events of agents in the order of receipt."""
    with _connected(place) as connection:
        connection.execute(ONE_A_DAY, given)
        place.maintain_partitions()
        agents = connection.execute(
            "SELECT id, tenant_id FROM agents_agent ORDER BY md5(id::text)"
        ).fetchall()
    values = {
        **given,
        "total": total,
        "agents": [row[0] for row in agents],
        "tenants": [row[1] for row in agents],
        "count": len(agents),
    }
    firsts = range(1, total + 1, CHUNK)
    with step(f"{total:,} events"), ThreadPoolExecutor(WRITERS) as pool:
        chunks = [{**values, "first": first, "last": min(first + CHUNK - 1, total)} for first in firsts]
        for number, chunk in enumerate(pool.map(lambda chunk: _insert(place, chunk), chunks), 1):
            if number % 4 == 0:
                say(f"  … {chunk:,}")


def _insert(place: Place, chunk: dict[str, Any]) -> int:
    with _connected(place) as connection:
        connection.execute(rows.EVENTS, chunk)
    return int(chunk["last"])


@contextmanager
def _connected(place: Place) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    """A connection that knows the functions of the statements, and waits for no disk."""
    with psycopg.connect(place.live_url, autocommit=True) as connection:
        for setting in ("statement_timeout = 0", "synchronous_commit = off", "work_mem = '128MB'"):
            connection.execute(f"SET {setting}")
        connection.execute(rows.FUNCTIONS)
        yield connection
