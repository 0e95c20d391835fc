"""Seal entries into the tree, and sign its head.

One sealer works at a time: `turn()` holds an advisory lock for many rounds, `seal_queued()` another for one.
A round takes entries that have committed; one that commits later gets a later index. A head is signed only
after its tree has committed: a signature of a tree that is rolled back would prove two histories.
"""

import logging
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Final, NamedTuple

from django.db import IntegrityError

from auditlog.errors import TreeDamaged
from auditlog.leaves import SALTS_OCTETS, entry_hash
from auditlog.models import SignedHead
from auditlog.sealing import keys
from auditlog.sealing.stored_rows import COLUMNS, entry_row
from auditlog.sealing.tree import BEYOND_TREE, StoredTiles, head, latest_checkpoint
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.lines import TlogError
from auditlog.tlog.notes import Note
from auditlog.tlog.tiles import extended, partial_tiles
from compliance.core import environments
from compliance.stores import session_locks, sql

log = logging.getLogger(__name__)

LOCK: Final = 0x61756469  # "audi": the key of the advisory lock of a round in each environment's database
TURN: Final = 0x7475726E  # "turn": that of the lock of many rounds, which another session may hold
ROUND: Final = 4096
BLOCK: Final = 512
"""Entries read at once: an entry may be large."""
_QUEUED: Final = (
    f"SELECT p.id, {COLUMNS} FROM auditlog_pendingentry p"  # noqa: S608  (names of ours)
    " JOIN auditlog_auditentry e ON e.id = p.entry_id"
)
_UNSEALED: Final = " WHERE NOT EXISTS (SELECT FROM auditlog_leaf l WHERE l.entry_id = p.entry_id)"
_SEAL: Final = (
    "SELECT auditlog_seal(%s, %s::bigint[], %s::uuid[], %s::bytea[],"
    " %s::smallint[], %s::bigint[], %s::bytea[], %s)"
)


class _Queued(NamedTuple):
    """An entry's place in the queue, its new salts, and the leaf hash made with them."""

    pending_id: int
    salts: bytes
    leaf: bytes


def turn() -> AbstractContextManager[bool]:
    """Keep other sealers away inside the block; yields False where another one is at work."""
    return session_locks.locked(TURN)


def seal_queued() -> int:
    """Seal a round of entries; return how many, 0 while another sealer works. Raises: TreeDamaged."""
    try:
        return _seal_round(_QUEUED)
    except IntegrityError:
        log.critical("audit entries are queued twice or after they were sealed: run audit_verify")
        return _seal_round(_QUEUED + _UNSEALED)


def _seal_round(queued: str) -> int:
    with environments.atomic():
        if not sql.query("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])[0][0]:
            return 0
        taken: dict[str, _Queued] = {}
        for rows in sql.streamed(f"{queued} ORDER BY p.id LIMIT %s", [ROUND], most=BLOCK):
            for row in rows:
                entry, salts = entry_row(row), os.urandom(SALTS_OCTETS)
                taken.setdefault(entry.id, _Queued(row[0], salts, entry_hash(entry, salts)))
        if taken:
            _append(head().size, taken)
    return len(taken)


def seal_all() -> int:
    """Seal what is queued, in as many rounds as it takes; return how many entries."""
    sealed = 0
    while count := seal_queued():
        sealed += count
    return sealed


def _append(size: int, taken: Mapping[str, _Queued]) -> None:
    queued, salts, leaves = zip(*taken.values(), strict=True)
    stored = StoredTiles()
    changed = extended(size, stored.load(partial_tiles(size)), leaves)
    stored.put(changed)
    levels, indexes = zip(*changed, strict=True)
    try:
        root = stored.root(size + len(taken))
    except TlogError as error:
        raise TreeDamaged(f"The audit log does not grow: {error}") from error
    tiles = list(changed.values())
    queued_ids, entry_ids, kept = list(queued), list(taken), list(salts)
    sql.prepared(_SEAL, [size, queued_ids, entry_ids, kept, list(levels), list(indexes), tiles, root])


def sign_head(*, now: datetime) -> SignedHead | None:
    """Sign a new head if there is one. Raises: TreeDamaged if it is a fork, LogKeysMissing, Unavailable."""
    current, last = head(), latest_checkpoint()
    if (beyond := latest_checkpoint(BEYOND_TREE)) is not None:
        detail = f"{current.size} entries, {beyond.size} are signed"
        raise TreeDamaged(f"The audit log was rolled back: its tree has {detail}")
    if current.size == 0 or (last is not None and last.size == current.size):
        return None
    stored = StoredTiles()
    if stored.root_or_nothing(current.size) != current.root:
        raise TreeDamaged(f"The tiles of the audit log do not make the root of its {current.size} entries")
    if last is not None and stored.root_or_nothing(last.size) != bytes(last.root):
        raise TreeDamaged(f"The audit log does not begin with its signed first {last.size} entries")
    text = Checkpoint(keys.origin(), current.size, current.root).text()
    note = Note(text, tuple(keys.sign(text, now=now))).encode()
    made = SignedHead(size=current.size, root=current.root, note=note, signed_at=now)
    try:
        with environments.atomic():
            # Another process may have signed the same head.
            return SignedHead.objects.bulk_create([made], ignore_conflicts=True)[0]
    except IntegrityError as error:
        # The tree has grown in between: its new head is signed next.
        log.warning("checkpoint of %d entries not stored: %s", current.size, error)
        return None
