"""Fills the live database of a site up to a size: events over months, and a sealed audit log."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.audit_tree.filling import FILL as ENTRIES
from bench.harness.history import CHUNK, DAYS, FILL, MARGIN_SECONDS, WRITERS
from bench.restore.site import Site
from compliance.localdev.console import say, step

GIGABYTE = 1_000_000_000
EXPECTED_BYTES = 600
"""Of an event with its indexes: how densely events are spread over the months."""
ENTRIES_AT_ONCE = 250_000


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
    with step(f"events up to {size / GIGABYTE:g} GB"):
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
            connection.execute(FILL, given)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(insert, chunks))
