"""Read from the tree what outsiders verify: checkpoints, tiles, bundles of leaves, proofs."""

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings

from auditlog.errors import (
    ContentsDropped,
    NoSuchTree,
    NothingSealed,
    NotSealedYet,
    TileNotFound,
    TreeDamaged,
)
from auditlog.models import AuditEntry, SignedHead
from auditlog.sealing.stored_rows import SealedEntry, sealed_between, sealed_entry_of
from auditlog.sealing.tree import StoredTiles, head, latest_checkpoint, published_checkpoint
from auditlog.tlog.errors import TlogError
from auditlog.tlog.merkle import leaf_hash
from auditlog.tlog.notes import Note
from auditlog.tlog.proof_file import ProofFile
from auditlog.tlog.tiles import HASH, WIDTH, parse_path, width_at

HIGHEST_LEVEL = 63
MET, MISSING, NO_POLICY = QUORUMS = ("met", "missing", "none")


@dataclass(frozen=True)
class Consistency:
    """The proof (RFC 6962 §2.1.2) that the tree of `new` leaves begins with that of `old` leaves."""

    old: int
    new: int
    path: list[bytes]


def checkpoint(*, now: datetime) -> SignedHead:
    """Return the published checkpoint of the current environment; raises `NothingSealed`."""
    if found := published_checkpoint(now=now):
        return found
    raise NothingSealed()


def quorum_of(checkpoint: SignedHead | None) -> str:
    """Return whether enough witnesses have cosigned: `met`, `missing`, or `none` without a policy."""
    if checkpoint is not None and checkpoint.has_quorum:
        return MET
    return MISSING if settings.AUDIT_WITNESS_POLICY else NO_POLICY


def tile(level: str, path: str) -> bytes:
    """Return a tile's hashes (C2SP tlog-tiles). Raises: TileNotFound, also beyond the newest checkpoint;
    TreeDamaged.
    """
    number = int(level) if level.isascii() and level.isdigit() and len(level) <= 2 else HIGHEST_LEVEL + 1
    if number > HIGHEST_LEVEL or str(number) != level:
        raise TileNotFound()
    index, width = _covered(number, path)
    found = StoredTiles().fetch(number, index)[: width * HASH]
    if len(found) != width * HASH:
        raise TreeDamaged()
    return found


def bundle(path: str) -> bytes:
    """Return a bundle of leaves, each behind its length in two octets.

    A leaf holds commitments only, so that every tenant may read every leaf. Raises: TileNotFound,
    ContentsDropped if retention has dropped the contents of one, TreeDamaged if they do not fit the tile.
    """
    index, width = _covered(0, path)
    start = index * WIDTH
    if start < head().minimum_index:
        raise ContentsDropped()
    try:
        leaves = [entry.leaf() for entry in sealed_between(start, start + width)]
    except (ValueError, TypeError) as error:
        raise TreeDamaged(f"An entry of bundle {path} is not as sealed: {error}") from error
    if b"".join(map(leaf_hash, leaves)) != StoredTiles().fetch(0, index)[: width * HASH]:
        # Unless retention has come in between, the tables were tampered with: that must not be cached.
        raise ContentsDropped() if start < head().minimum_index else TreeDamaged()
    return b"".join(len(leaf).to_bytes(2, "big") + leaf for leaf in leaves)


def proof(*, tenant_id: UUID, entry_id: str, now: datetime) -> ProofFile:
    """Return the entry's proof file (C2SP tlog-proof); `extra` is the disclosure of the entry as JSON.

    Raises: EntryNotFound, NotSealedYet while no published checkpoint covers the entry.
    """
    entry = AuditEntry.objects.for_tenant(tenant_id).find(entry_id)
    sealed = sealed_entry_of(entry.id, tenant_id=tenant_id)
    under = published_checkpoint(now=now, covering=sealed.index) if sealed else None
    if sealed is None or under is None:
        raise NotSealedYet(retry_after=1)
    return prove(sealed, under, StoredTiles())


def prove(sealed: SealedEntry, under: SignedHead, stored: StoredTiles) -> ProofFile:
    """Make the proof that the entry is in the tree of the checkpoint."""
    extra = json.dumps(sealed.disclosure(), ensure_ascii=False, separators=(",", ":")).encode()
    path = stored.inclusion_path(sealed.index, under.size)
    return ProofFile(sealed.index, path, Note.parse(under.note), extra)


def consistency(*, old: int, new: int | None) -> Consistency:
    """Prove that the tree of `new` leaves, by default the newest checkpoint's, begins with that of `old`.

    Raises: NothingSealed, NoSuchTree if the newest checkpoint is smaller, or `new` smaller than `old`.
    """
    found = latest_checkpoint()
    if found is None:
        raise NothingSealed()
    newest = found.size
    new = newest if new is None else new
    if not 0 <= old <= new <= newest:
        raise NoSuchTree(f"from and to must satisfy 0 <= from <= to <= {newest}")
    try:
        return Consistency(old, new, StoredTiles().consistency_path(old, new))
    except TlogError as error:
        raise TreeDamaged() from error


def _covered(level: int, path: str) -> tuple[int, int]:
    """Return index and width of a tile that the newest checkpoint covers; raises `TileNotFound`."""
    try:
        index, width = parse_path(path)
    except TlogError as error:
        raise TileNotFound() from error
    newest = latest_checkpoint()
    if newest is None or width_at(newest.size, level, index) < width:
        raise TileNotFound()
    return index, width
