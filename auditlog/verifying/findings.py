"""Findings of a verification, its verdict, and how entries differ from what was sealed, hashed anew."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from auditlog.leaves import ERASABLE, ERASED, NO_SALT, PARTS, SALT_OCTETS, SALTS_OCTETS
from auditlog.sealing.stored_rows import SealedEntry, sealed_between
from compliance.stores import sql

MOST_KEPT: Final = 20


class LogOutcome(StrEnum):
    """The verdict of a verification; `CANNOT_TELL` where something it needs is absent."""

    VERIFIED = "verified"
    TAMPERED = "tampered"
    CANNOT_TELL = "cannot tell"


class Damage(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    SWAPPED = "swapped"
    INSERTED = "inserted"
    TILE = "tile"
    HEAD = "head"
    CHECKPOINT = "checkpoint"
    ROLLED_BACK = "rolled back"
    UNRECORDED = "unrecorded"
    FILE = "file"


@dataclass(frozen=True)
class Flaw:
    """One thing that is wrong: at which place in the tree, in which entry, and what."""

    damage: Damage
    detail: str
    index: int | None = None
    entry_id: str | None = None

    def __str__(self) -> str:
        place = "" if self.index is None else f" at index {self.index}"
        entry = "" if self.entry_id is None else f", entry {self.entry_id}"
        return f"{self.damage}{place}{entry}: {self.detail}"


@dataclass
class Verdict:
    """The first flaws, how many there are, what was counted, and `doubts`: why nothing can be told."""

    subject: str
    counts: dict[str, Any] = field(default_factory=dict)
    flaws: list[Flaw] = field(default_factory=list)
    flaw_count: int = 0
    doubts: list[str] = field(default_factory=list)

    def add(self, *flaws: Flaw) -> None:
        self.flaw_count += len(flaws)
        self.flaws += flaws[: max(0, MOST_KEPT - len(self.flaws))]

    @property
    def outcome(self) -> LogOutcome:
        if self.flaw_count:
            return LogOutcome.TAMPERED
        return LogOutcome.CANNOT_TELL if self.doubts else LogOutcome.VERIFIED


_IDS: Final = (
    "SELECT index, array_agg(entry_id::text) FROM auditlog_leaf WHERE index >= %s AND index < %s GROUP BY 1"
)
_PLACE: Final = (
    "SELECT 256 * t.index + (position(h.hash IN t.hashes) - 1) / 32"
    " FROM auditlog_tile t, (SELECT %s::bytea) h (hash)"
    " WHERE t.level = 0 AND position(h.hash IN t.hashes) %% 32 = 1 LIMIT 1"
)
_COMMITMENT: Final = re.compile("[0-9a-f]{64}", re.ASCII)


def recomputed(start: int, end: int) -> dict[int, bytes]:
    """Return the leaf hashes computed from the rows, by index; no octets for one that cannot be as sealed."""
    hashes: dict[int, bytes] = {}
    for entry in sealed_between(start, end):
        is_sound = entry.index not in hashes and not problem_of(entry)
        hashes[entry.index] = entry.hash() if is_sound else b""
    return hashes


def problem_of(entry: SealedEntry) -> str:
    """Return what is wrong with an entry's salts and erased parts whatever its hash; empty if nothing."""
    for part, commitment in entry.erased.items():
        if part not in ERASABLE or not _COMMITMENT.fullmatch(str(commitment)):
            return f"{part} cannot be erased"
        if getattr(entry.row, part) != (ERASED if part == "actor_id" else None):
            return f"{part} is erased and yet shown"
        place = PARTS.index(part) * SALT_OCTETS
        if entry.salts[place : place + SALT_OCTETS] != NO_SALT:
            return f"{part} is erased and has a salt"
    return "" if len(entry.salts) == SALTS_OCTETS else "it does not have five salts"


def flaws(present: Mapping[int, bytes]) -> list[Flaw]:
    """Name the entries at these indexes, whose hashes as they are now are not those that were sealed."""
    if not present:
        return []
    first, end = min(present), max(present) + 1
    rows = {entry.index: entry for entry in sealed_between(first, end)}
    ids: dict[int, list[str]] = dict(sql.query(_IDS, [first, end]))
    return [_flaw(index, ids.get(index, []), rows.get(index), present[index]) for index in present]


def _flaw(index: int, ids: list[str], entry: SealedEntry | None, present: bytes) -> Flaw:
    if not ids:
        return Flaw(Damage.MISSING, "no entry has this place", index)
    if len(ids) > 1:
        return Flaw(Damage.INSERTED, f"{len(ids)} entries have this place", index, ids[0])
    if entry is None:
        return Flaw(Damage.MISSING, "the row of the entry is gone", index, ids[0])
    if problem := problem_of(entry):
        return Flaw(Damage.CHANGED, problem, index, ids[0])
    for (other,) in sql.query(_PLACE, [present]) if present else ():
        return Flaw(Damage.SWAPPED, f"it was sealed at index {other}", index, ids[0])
    return Flaw(Damage.CHANGED, "the row or its salts are not what was sealed", index, ids[0])
