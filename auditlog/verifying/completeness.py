"""Find what no hash shows: entries neither sealed nor queued, and unrecorded erasures and drops."""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final
from uuid import UUID

from django.conf import settings

from auditlog.sealing.tree import Head
from auditlog.tlog.tiles import HASH, WIDTH
from auditlog.verifying.findings import MOST_KEPT, Damage, Flaw
from auditlog.verifying.stillness import SETTLED_WITHIN_SECONDS
from compliance.core import environments
from compliance.stores import sql

_MOST: Final = MOST_KEPT + 1
_BLOCK: Final = 16_384
_UNQUEUED: Final = """
SELECT e.id FROM auditlog_auditentry e
WHERE NOT EXISTS (SELECT FROM auditlog_leaf l WHERE l.entry_id = e.id)
AND NOT EXISTS (SELECT FROM auditlog_pendingentry p WHERE p.entry_id = e.id) ORDER BY e.id
"""
# Citus does not compare rows of nodes with those of the coordinator.
_ENTRIES: Final = "SELECT id FROM auditlog_auditentry"
_STILL_UNQUEUED: Final = """
SELECT f.id FROM unnest(%s::uuid[]) AS f (id)
WHERE NOT EXISTS (SELECT FROM auditlog_leaf l WHERE l.entry_id = f.id)
AND NOT EXISTS (SELECT FROM auditlog_pendingentry p WHERE p.entry_id = f.id) ORDER BY f.id
"""
_QUEUED: Final = "SELECT entry_id FROM auditlog_pendingentry ORDER BY id"
_ROWS: Final = "SELECT id FROM auditlog_auditentry WHERE id = ANY(%s)"
_QUEUED_AGAIN: Final = """
SELECT p.entry_id::text, l.index FROM auditlog_pendingentry p JOIN auditlog_leaf l ON l.entry_id = p.entry_id
ORDER BY p.id LIMIT %s
"""
_OUTSIDE: Final = """
SELECT index, entry_id::text FROM auditlog_leaf
WHERE index < %s OR index >= %s OR index IS NULL ORDER BY index LIMIT %s
"""
_UNRECORDED: Final = """
SELECT l.index, l.entry_id::text, part FROM auditlog_leaf l
JOIN auditlog_auditentry s ON s.id = l.entry_id, jsonb_object_keys(l.erased) part
WHERE l.erased IS NOT NULL AND jsonb_typeof(l.erased) = 'object' AND NOT EXISTS (
    SELECT FROM auditlog_auditentry e WHERE e.event_type = 'audit.erased' AND e.tenant_id = s.tenant_id
    AND e.affected_id = l.entry_id::text AND coalesce(e.metadata -> 'parts' ? part, true)
) ORDER BY l.index LIMIT %s
"""
_ERASED: Final = """
SELECT count(*) FROM auditlog_leaf l, jsonb_object_keys(l.erased)
WHERE l.erased IS NOT NULL AND jsonb_typeof(l.erased) = 'object'
"""
_DROPS: Final = """
SELECT (metadata ->> 'from')::bigint, (metadata ->> 'to')::bigint FROM auditlog_auditentry
WHERE event_type = 'audit.dropped' AND metadata ->> 'from' ~ '^[0-9]{1,18}$'
AND metadata ->> 'to' ~ '^[0-9]{1,18}$' ORDER BY 2 DESC, 1
"""
_TILES: Final = """
SELECT level, count(*), max(index), sum(octet_length(hashes)) FROM auditlog_tile GROUP BY level ORDER BY level
"""


def flaws(head: Head) -> Iterator[Flaw]:
    """Yield what is wrong with the tables although every hash may agree."""
    for entry_id, index in sql.query(_QUEUED_AGAIN, [_MOST]):
        yield Flaw(Damage.INSERTED, "it is sealed and queued again", index, entry_id)
    for index, entry_id in sql.query(_OUTSIDE, [head.minimum_index, head.size, _MOST]):
        yield Flaw(
            Damage.INSERTED, "the tree has no such place, or its contents were dropped", index, entry_id
        )
    for index, entry_id, part in sql.query(_UNRECORDED, [_MOST]):
        yield Flaw(Damage.UNRECORDED, f"no entry records that {part} was erased", index, entry_id)
    yield from _undropped(head.minimum_index)
    yield from _tile_counts(head.size)


def queue_flaws(*, timeout_seconds: int) -> Iterator[Flaw]:
    """Yield which entries are not queued, and which of the queue have no row; outside of any snapshot.

    The queue is looked at after the entries. On Citus a transaction ends at the coordinator, which has the
    queue, before it does at the nodes with the rows, and the nodes are not looked at in one moment.
    """
    looked_at = _ENTRIES if settings.DATABASE_CITUS else _UNQUEUED
    with environments.patient(timeout_seconds=timeout_seconds):
        for entry_id in islice(_found(looked_at, _still_unqueued), _MOST):
            yield Flaw(Damage.INSERTED, "it is neither sealed nor queued", entry_id=str(entry_id))
        for entry_id in islice(_found(_QUEUED, _without_row), _MOST):
            yield Flaw(Damage.MISSING, "the row of a queued entry is gone", entry_id=str(entry_id))


def leaf_tiles() -> int:
    """Return how many tiles of leaves there are."""
    count: int = sql.query("SELECT count(*) FROM auditlog_tile WHERE level = 0")[0][0]
    return count


def queued() -> int:
    """Return how many entries wait to be sealed."""
    count: int = sql.query("SELECT count(*) FROM auditlog_pendingentry")[0][0]
    return count


def erased() -> int:
    """Return how many parts of entries are erased."""
    count: int = sql.query(_ERASED)[0][0]
    return count


def _found(statement: str, chosen: Callable[[list[UUID]], list[UUID]]) -> Iterator[UUID]:
    for rows in sql.streamed(statement, (), most=_BLOCK):
        yield from chosen([entry_id for (entry_id,) in rows])


def _still_unqueued(entry_ids: list[UUID]) -> list[UUID]:
    return [entry_id for (entry_id,) in sql.query(_STILL_UNQUEUED, [entry_ids])]


def _without_row(entry_ids: list[UUID]) -> list[UUID]:
    """Return those whose row is not there; on Citus, whose row does not come."""
    ends = time.monotonic() + (SETTLED_WITHIN_SECONDS if settings.DATABASE_CITUS else 0)
    while True:
        there = {entry_id for (entry_id,) in sql.query(_ROWS, [entry_ids])}
        if there.issuperset(entry_ids) or time.monotonic() > ends:
            return [entry_id for entry_id in entry_ids if entry_id not in there]
        time.sleep(0.1)


def _undropped(minimum_index: int) -> Iterator[Flaw]:
    """Demand records of the drops up to `minimum_index`, without a gap as far back as records go.

    Records of older drops may themselves be past their retention.
    """
    drops = sql.query(_DROPS) if minimum_index else []
    reached, oldest = minimum_index, min((start for start, _ in drops), default=-1)
    for start, end in drops:
        if start < reached <= end:
            reached = start
    if minimum_index and reached != oldest:
        detail = f"no entry records that the contents before index {reached} were dropped"
        yield Flaw(Damage.UNRECORDED, detail, reached - 1)


def _tile_counts(size: int) -> Iterator[Flaw]:
    """Compare how many tiles and hashes there are with what a tree of this size has."""
    found = {level: tuple(counts) for level, *counts in sql.query(_TILES)}
    wanted, level, hashes = {}, 0, size
    while hashes > 0:
        tiles = -(-hashes // WIDTH)
        wanted[level] = (tiles, tiles - 1, hashes * HASH)
        level, hashes = level + 1, hashes // WIDTH
    for level in sorted({*found, *wanted}):
        if found.get(level) != wanted.get(level):
            tiles, _, octets = wanted.get(level, (0, -1, 0))
            detail = f"level {level} does not have {tiles} tiles of {octets // HASH} hashes in all"
            yield Flaw(Damage.TILE, detail)
