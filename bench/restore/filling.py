"""Fills the live database of a site up to a size: events over months, and a sealed audit log."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.audit.filling import FILL as ENTRIES
from bench.data.history import DAYS, MARGIN_SECONDS
from bench.restore.site import Site
from compliance.localdev.console import say, step

GIGABYTE = 1_000_000_000
WRITERS = 2
CHUNK = 20_000
EXPECTED_BYTES = 2_300
"""Of an event with its indexes: how densely events are spread over the months."""
ENTRIES_AT_ONCE = 250_000

# `moment` is in milliseconds. Details of 1.5 kB that compress as badly as encrypted ones.
EVENTS = """
INSERT INTO events_behaviorevent (id, tenant_id, agent_id, action_type, risk_score, risk_band, occurred_at,
    received_at, details, reasons, model_version)
SELECT (lpad(to_hex(moment), 12, '0') || '7' || substr(digits, 1, 3) || '8' || substr(digits, 4, 15))::uuid,
    %(tenant)s, (%(agents)s::uuid[])[1 + n %% %(count)s], 'data_access', 0.1, 'low',
    to_timestamp(moment / 1000.0), to_timestamp(moment / 1000.0),
    jsonb_build_object('tool', 'search_orders', 'context', context), '[]', 'bench'
FROM (
    SELECT n, (%(first)s::bigint + n * %(step)s::float8)::bigint AS moment, md5(random()::text) AS digits,
        (SELECT string_agg(md5(n::text || part || random()), '') FROM generate_series(1, 45) part) AS context
    FROM generate_series(0, %(rows)s - 1) AS n
) AS made
"""


def size_of(site: Site) -> int:
    """Return the octets of both databases."""
    with site.admin() as connection:
        names = list(site.servers.database_names())
        statement = "SELECT sum(pg_database_size(datname)) FROM pg_database WHERE datname = ANY(%s)"
        return int(connection.execute(statement, [names]).fetchall()[0][0])


def fill(site: Site, *, size: int, entries: int) -> None:
    """Add audit entries, all sealed, then events until the databases have `size` octets."""
    with step(f"{entries:,} audit entries"):
        _add_entries(site, entries)
    with step(f"events up to {size / GIGABYTE:.2f} GB"):
        _add_events(site, size)
    with step("statistics and a checkpoint"), site.live() as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _add_entries(site: Site, count: int) -> None:
    for start in range(0, count, ENTRIES_AT_ONCE):
        given = {"tenant": site.demo["tenant_id"], "count": min(ENTRIES_AT_ONCE, count - start)}
        with site.live() as connection:
            connection.execute(ENTRIES.format(new_id="uuidv7()"), given)
        site.child("seal")


def _add_events(site: Site, size: int) -> None:
    events = max(size // EXPECTED_BYTES, CHUNK)
    span, start = DAYS * 86_400_000, int((time.time() - MARGIN_SECONDS - DAYS * 86_400) * 1_000)
    with site.live() as connection:
        agents = [row[0] for row in connection.execute("SELECT id FROM agents_agent").fetchall()]
    given = {"tenant": site.demo["tenant_id"], "agents": agents, "count": len(agents)}
    # One event a day shows which partitions are wanted.
    _insert(site, [{**given, "first": start, "step": 86_400_000, "rows": DAYS}])
    site.manage("partition_maintain", "--environment", "live", accepted=(0, 6))
    number = 0
    while (missing := size - size_of(site)) > 0:
        chunks = max(WRITERS, min(20, missing // (EXPECTED_BYTES * CHUNK)))
        # What exceeds the estimate goes on where the months began.
        firsts = [start + (number + each) * CHUNK * span // events % span for each in range(chunks)]
        _insert(site, [{**given, "first": at, "step": span / events, "rows": CHUNK} for at in firsts])
        number += chunks
        say(f"  … {number * CHUNK:,} events, {size_of(site) / GIGABYTE:.2f} GB")


def _insert(site: Site, chunks: Sequence[dict[str, Any]]) -> None:
    def insert(given: dict[str, Any]) -> None:
        with site.live() as connection:
            connection.execute("SET synchronous_commit = off")
            connection.execute(EVENTS, given)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(insert, chunks))
