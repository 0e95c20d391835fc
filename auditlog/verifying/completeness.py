"""Find what no hash shows: entries neither sealed nor queued, and unrecorded erasures and drops."""

from collections.abc import Iterator
from typing import Final

from auditlog.models import TreeHead
from auditlog.tlog.tiles import HASH, WIDTH
from auditlog.verifying.findings import MOST_KEPT, Damage, Flaw
from compliance.stores import sql

_MOST: Final = MOST_KEPT + 1
_UNSEALED: Final = """
SELECT e.id::text FROM auditlog_auditentry e
WHERE NOT EXISTS (SELECT FROM auditlog_leaf l WHERE l.entry_id = e.id)
AND NOT EXISTS (SELECT FROM auditlog_pendingentry p WHERE p.entry_id = e.id) ORDER BY e.id LIMIT %s
"""
_QUEUED: Final = """
SELECT p.entry_id::text, l.index FROM auditlog_pendingentry p
LEFT JOIN auditlog_auditentry e ON e.id = p.entry_id LEFT JOIN auditlog_leaf l ON l.entry_id = p.entry_id
WHERE e.id IS NULL OR l.index IS NOT NULL ORDER BY p.id LIMIT %s
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
COUNTS: Final = """
SELECT (SELECT count(*) FROM auditlog_tile WHERE level = 0), (SELECT count(*) FROM auditlog_pendingentry),
    (SELECT count(*) FROM auditlog_leaf, jsonb_object_keys(erased)
     WHERE erased IS NOT NULL AND jsonb_typeof(erased) = 'object')
"""
"""Counts of tiles of leaves, of entries that wait to be sealed, and of erased parts of entries."""
_DROPS: Final = """
SELECT (metadata ->> 'from')::bigint, (metadata ->> 'to')::bigint FROM auditlog_auditentry
WHERE event_type = 'audit.dropped' AND metadata ->> 'from' ~ '^[0-9]{1,18}$'
AND metadata ->> 'to' ~ '^[0-9]{1,18}$' ORDER BY 2 DESC, 1
"""
_TILES: Final = """
SELECT level, count(*), max(index), sum(octet_length(hashes)) FROM auditlog_tile GROUP BY level ORDER BY level
"""


def flaws(head: TreeHead) -> Iterator[Flaw]:
    """Yield what is wrong with the tables although every hash may agree."""
    for (entry_id,) in sql.query(_UNSEALED, [_MOST]):
        yield Flaw(Damage.INSERTED, "it is neither sealed nor queued", entry_id=entry_id)
    for entry_id, index in sql.query(_QUEUED, [_MOST]):
        if index is None:
            yield Flaw(Damage.MISSING, "the row of a queued entry is gone", entry_id=entry_id)
        else:
            yield Flaw(Damage.INSERTED, "it is sealed and queued again", index, entry_id)
    for index, entry_id in sql.query(_OUTSIDE, [head.minimum_index, head.size, _MOST]):
        yield Flaw(
            Damage.INSERTED, "the tree has no such place, or its contents were dropped", index, entry_id
        )
    for index, entry_id, part in sql.query(_UNRECORDED, [_MOST]):
        yield Flaw(Damage.UNRECORDED, f"no entry records that {part} was erased", index, entry_id)
    yield from _undropped(head.minimum_index)
    yield from _tile_counts(head.size)


def _undropped(minimum_index: int) -> Iterator[Flaw]:
    """Demand records of the drops up to `minimum_index` without a gap, as far back as they are kept."""
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
