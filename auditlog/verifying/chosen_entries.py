"""Compare chosen entries with their leaves in the tree, and those with the root of a checkpoint."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from auditlog.models import Leaf, SignedHead
from auditlog.querysets import AuditEntryQuerySet
from auditlog.sealing.stored_rows import sealed_among
from auditlog.sealing.tree import StoredTiles
from auditlog.tlog.tiles import FULL, HASH, WIDTH, perfect_root, width_at
from auditlog.verifying.findings import problem_of
from compliance.stores import sql

BATCH: Final = 1_000
_BLOCK: Final = 64 * WIDTH
_PRESENT: Final = (
    "SELECT count(*) FROM auditlog_leaf l JOIN auditlog_auditentry e ON e.id = l.entry_id"
    " WHERE l.index >= %s AND l.index < %s"
)


@dataclass
class ComparedEntries:
    """Counts of the chosen entries under a checkpoint; `is_rooted`: its root follows from their leaves."""

    as_sealed: int = 0
    changed: int = 0
    erased_entries: int = 0
    erased_parts: int = 0
    is_rooted: bool = True


def compare(entries: AuditEntryQuerySet, under: SignedHead) -> ComparedEntries:
    """Hash the entries that are under a checkpoint anew, and their tiles up to its root; in portions."""
    statement, params = entries.order_by().query.sql_with_params()
    found = ComparedEntries()
    for batch in sealed_among(statement, params, before=under.size, most=BATCH):
        stored = StoredTiles()
        stored.load({(0, entry.index // WIDTH) for entry in batch})
        fits = sum(not problem_of(entry) and stored.leaf(entry.index) == entry.hash() for entry in batch)
        found.as_sealed += fits
        found.changed += len(batch) - fits
        found.erased_entries += sum(bool(entry.erased) for entry in batch)
        found.erased_parts += sum(len(entry.erased) for entry in batch)
        found.is_rooted &= _is_rooted(stored, {entry.index for entry in batch}, under)
    return found


def places_without_entry(*, after: Any, before: Any, size: int, minimum_index: int) -> int:
    """Return how many leaves between those of two entries have lost their entry, whosever it was.

    `after`, `before`: ids of entries; None, or one that is not sealed: the ends of the tree of `size` leaves.
    Entries before `minimum_index` were dropped by their retention.
    """
    places = dict(Leaf.objects.filter(entry_id__in=[after, before]).values_list("entry_id", "index"))
    start = max(minimum_index, places.get(after, -1) + 1)
    end = min(size, places.get(before, size))
    missing = 0
    for first in range(start, end, _BLOCK):
        last = min(end, first + _BLOCK)
        missing += last - first - sql.query(_PRESENT, [first, last])[0][0]
    return missing


def _is_rooted(stored: StoredTiles, leaves: Collection[int], under: SignedHead) -> bool:
    """Return whether the tiles above those of the leaves, up to the checkpoint's root, follow from them."""
    level, tiles = 0, {index // WIDTH for index in leaves}
    while full := [index for index in tiles if width_at(under.size, level, index) == WIDTH]:
        tiles = {index // WIDTH for index in full}
        stored.load({(level + 1, index) for index in tiles})
        for index in full:
            tile, place = stored.fetch(level, index), index % WIDTH * HASH
            above = stored.fetch(level + 1, index // WIDTH)[place : place + HASH]
            if len(tile) != FULL or perfect_root(tile) != above:
                return False
        level += 1
    return stored.root_or_nothing(under.size) == bytes(under.root)
