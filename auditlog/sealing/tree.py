"""The stored tree of the current environment: its head, its tiles, and proofs made from them."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from auditlog.errors import TreeDamaged
from auditlog.models import LogKey, SignedHead, TreeHead
from auditlog.sealing.keys import verifier_key
from auditlog.tlog import tiles
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.lines import Malformed, TlogError
from auditlog.tlog.merkle import inclusion_path, tree_root
from auditlog.tlog.notes import Note, verified
from auditlog.tlog.tiles import Coordinates
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql

log = logging.getLogger(__name__)

MOST_FORGED: Final = 32
OF_TREE: Final = "size <= (SELECT size FROM auditlog_treehead)"
BEYOND_TREE: Final = "size > (SELECT size FROM auditlog_treehead)"
_WAITING: Final = "WHERE size > %s AND size <= %s ORDER BY size LIMIT 1"
WITNESSES_WAIT: Final = timedelta(seconds=10)
_TILES: Final = (
    "SELECT t.level, t.index, t.hashes FROM auditlog_tile t"
    " JOIN unnest(%s::smallint[], %s::bigint[]) AS w (level, index) USING (level, index)"
)
_BACKLOG: Final = """
WITH signed AS MATERIALIZED (
    SELECT coalesce(max(size), 0) AS size FROM auditlog_signedhead
    WHERE size <= (SELECT size FROM auditlog_treehead)
), waiting AS MATERIALIZED (
    SELECT entry_id FROM auditlog_leaf WHERE index = (SELECT size FROM signed)
    UNION ALL (SELECT entry_id FROM auditlog_pendingentry ORDER BY id LIMIT 1)
)
SELECT (SELECT count(*) FROM auditlog_pendingentry), h.size - signed.size,
    (SELECT min(created_at) FROM auditlog_auditentry WHERE id IN (SELECT entry_id FROM waiting))
FROM auditlog_treehead h, signed
"""


def head() -> TreeHead:
    """Return the tree as sealed, signed or not. Raises: TreeDamaged if there is not one head."""
    (rows,) = sql.read_together((TreeHead, "", ()))
    if len(rows) != 1:
        raise TreeDamaged(f"The audit log's tree has {len(rows)} heads")
    found: TreeHead = rows[0]
    return found


@dataclass(frozen=True)
class Backlog:
    """Counts of entries to be sealed and of sealed ones to be signed, and the time of the oldest."""

    unsealed: int
    unsigned: int
    oldest: datetime | None


def backlog() -> Backlog:
    return Backlog(*sql.query(_BACKLOG)[0])


def is_signed(checkpoint: SignedHead) -> bool:
    """Return whether the log's keys signed what the row says; any other row was not stored by the sealer."""
    try:
        _check_signed(environments.current(), checkpoint.note, checkpoint.size, bytes(checkpoint.root))
    except TlogError:
        log.critical("a checkpoint of %d entries is not signed by the log", checkpoint.size)
        return False
    return True


@lru_cache(maxsize=256)
def _check_signed(environment: Environment, note: str, size: int, root: bytes) -> None:
    """Raise TlogError, which is not remembered, unless the log signed a note of this size and root."""
    parsed = Note.parse(note)
    stated = Checkpoint.parse(parsed.text)
    # The log may have had another name then: its keys below tell.
    if stated != Checkpoint(stated.origin, size, root):
        raise Malformed("Another checkpoint than the row's")
    verified(parsed, [verifier_key(key) for key in LogKey.objects.filter(name=stated.origin)])


def latest_checkpoint(condition: str = OF_TREE) -> SignedHead | None:
    """Return the largest signed checkpoint that meets an SQL condition, past at most `MOST_FORGED` others."""
    for passed_over in range(MOST_FORGED):
        rest = f"WHERE {condition} ORDER BY size DESC LIMIT 1 OFFSET {passed_over}"
        (found,) = sql.read_together((SignedHead, rest, ()))
        if not found or is_signed(found[0]):
            return found[0] if found else None
    return None


def forged_checkpoint() -> SignedHead | None:
    """Return the newest stored checkpoint if the log did not sign it."""
    newest = SignedHead.objects.order_by("-size").first()
    return newest if newest is not None and not is_signed(newest) else None


def published_checkpoint(
    *, now: datetime, covering: int = 0, newest: SignedHead | None = None
) -> SignedHead | None:
    """Return the checkpoint to give to outsiders; None if there is none of more than `covering` leaves yet.

    The newest that witnesses have cosigned, unless they keep a newer one waiting for `WITNESSES_WAIT`: then
    the newest, without a quorum. `newest`: the latest checkpoint, if the caller has just read it.
    """
    newest = newest or latest_checkpoint()
    has_quorum = newest is not None and newest.has_quorum
    witnessed = newest if has_quorum else latest_checkpoint(f"{OF_TREE} AND has_quorum")
    if newest is None or newest.size <= covering:
        return None
    if witnessed is None or witnessed.size == newest.size:
        return newest
    (waiting,) = sql.read_together((SignedHead, _WAITING, (witnessed.size, newest.size)))
    if not waiting or waiting[0].signed_at < now - WITNESSES_WAIT:
        return newest
    return witnessed if witnessed.size > covering else None


class StoredTiles:
    """The tiles of the current environment, each read once; make one for each request or round."""

    def __init__(self) -> None:
        self._known: dict[Coordinates, bytes] = {}

    def load(self, wanted: Iterable[Coordinates]) -> dict[Coordinates, bytes]:
        """Return those of the tiles that exist, read in one statement."""
        levels, indexes = zip(*wanted, strict=True) if (wanted := list(wanted)) else ((), ())
        rows = sql.prepared(_TILES, [list(levels), list(indexes)])
        found = {(level, index): hashes for level, index, hashes in rows}
        self._known |= found
        return found

    def put(self, changed: dict[Coordinates, bytes]) -> None:
        self._known |= changed

    def fetch(self, level: int, index: int) -> bytes:
        """Return a tile as far as it is filled, empty if it does not exist."""
        if (level, index) not in self._known and not self.load([(level, index)]):
            self._known[level, index] = b""
        return self._known[level, index]

    def leaf(self, index: int) -> bytes:
        """Return the hash of a leaf as it was sealed; empty if it is not there."""
        start = index % tiles.WIDTH * tiles.HASH
        return self.fetch(0, index // tiles.WIDTH)[start : start + tiles.HASH]

    def subtree(self, start: int, end: int) -> bytes:
        """Return the hash of a complete subtree. Raises: TlogError if the tree is not so large."""
        return tiles.subtree(self.fetch, start, end)

    def root(self, size: int) -> bytes:
        return tree_root(size, self.subtree)

    def root_or_nothing(self, size: int) -> bytes:
        """Return the root of the first `size` leaves; empty if tiles are missing."""
        try:
            return self.root(size)
        except TlogError:
            return b""

    def inclusion_path(self, index: int, size: int) -> list[bytes]:
        """Return the inclusion proof of leaf `index` in the tree of `size` leaves, from the leaf up."""
        self.load(tiles.tiles_of_path(index, size))
        return inclusion_path(index, size, self.subtree)
