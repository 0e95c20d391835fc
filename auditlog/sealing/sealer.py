"""Seal entries into the tree, and sign its head.

One sealer works at a time: `TurnLock.SEALING` is held for many rounds, and `LOCK` for each of them.
A round takes entries that have committed; one that commits later gets a later index. A head is signed only
after its tree has committed: a signature of a tree that is rolled back would prove two histories.
"""

import logging
import os
from datetime import datetime
from typing import Final

from django.db import IntegrityError

from auditlog.errors import TreeDamaged
from auditlog.leaves import SALTS_OCTETS, leaf_data
from auditlog.models import SignedHead
from auditlog.sealing import keys
from auditlog.sealing.stored_rows import COLUMNS, entry_row
from auditlog.sealing.tree import BEYOND_TREE, StoredTiles, head, latest_checkpoint
from auditlog.tlog.checkpoints import Checkpoint
from auditlog.tlog.lines import TlogError
from auditlog.tlog.merkle import leaf_hash
from auditlog.tlog.notes import Note
from auditlog.tlog.tiles import extended, partial_tiles
from compliance.core import environments
from compliance.stores import sql

log = logging.getLogger(__name__)

LOCK: Final = 0x61756469  # "audi": the key of the advisory lock of a round in each environment's database
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


def seal_queued() -> int:
    """Seal a round of entries; return how many, 0 while another sealer works. Raises: TreeDamaged."""
    try:
        return _seal_round(_QUEUED)
    except IntegrityError:
        log.critical("audit entries are queued twice or after they were sealed: run audit_verify")
        return _seal_round(_QUEUED + _UNSEALED)


def _seal_round(queued: str) -> int:
    pending, salts, leaves = {}, [], []
    stored = StoredTiles()
    with environments.atomic():
        if not sql.query("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])[0][0]:
            return 0
        for rows in sql.streamed(f"{queued} ORDER BY p.id LIMIT %s", [ROUND], most=BLOCK):
            for row in rows:
                entry = entry_row(row)
                if entry.id not in pending:
                    pending[entry.id] = row[0]
                    salts.append(os.urandom(SALTS_OCTETS))
                    leaves.append(leaf_hash(leaf_data(entry, salts[-1])))
        if not pending:
            return 0
        size = head().size
        changed = extended(size, stored.load(partial_tiles(size)), leaves)
        stored.put(changed)
        try:
            root = stored.root(size + len(pending))
        except TlogError as error:
            raise TreeDamaged(f"The audit log does not grow: {error}") from error
        levels, indexes = (list(each) for each in zip(*changed, strict=True))
        queue = [list(pending.values()), list(pending), salts]
        sql.prepared(_SEAL, [size, *queue, levels, indexes, list(changed.values()), root])
    return len(pending)


def seal_all() -> int:
    """Seal what is queued, in as many rounds as it takes; return how many entries."""
    sealed = 0
    while count := seal_queued():
        sealed += count
    return sealed


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
    text = Checkpoint(keys.origin(), current.size, bytes(current.root)).text()
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
