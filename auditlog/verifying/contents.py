"""Recompute the hashes of leaves from the stored entries, and say how each that differs was changed."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from auditlog.leaves import ERASABLE, ERASED, NO_SALT, PARTS, SALT_OCTETS, SALTS_OCTETS, EntryRow, entry_hash
from auditlog.sealing.stored_rows import COLUMNS, SealedEntry, erased_parts, sealed_between
from auditlog.verifying.findings import Damage, Flaw
from compliance.stores import sql

_ROWS: Final = (
    f"COPY (SELECT l.index, encode(l.salts, 'hex'), l.erased::text, {COLUMNS} FROM auditlog_leaf l"  # noqa: S608  (names of ours)
    " JOIN auditlog_auditentry e ON e.id = l.entry_id"
    " WHERE l.index >= %s AND l.index < %s ORDER BY l.index) TO STDOUT"
)
_PLACE: Final = (
    "SELECT 256 * t.index + (position(h.hash IN t.hashes) - 1) / 32"
    " FROM auditlog_tile t, (SELECT %s::bytea) h (hash)"
    " WHERE t.level = 0 AND position(h.hash IN t.hashes) %% 32 = 1 LIMIT 1"
)
_COMMITMENT: Final = re.compile("[0-9a-f]{64}", re.ASCII)


def recomputed(start: int, end: int) -> list[bytes]:
    """Return the hashes of leaves `start` to `end - 1`, each from its entry's row; empty for a missing one.

    A place that two leaves have counts as missing too.
    """
    hashes = [b""] * (end - start)
    seen: set[int] = set()
    with sql.driver_cursor() as cursor, cursor.copy(_ROWS, (start, end)) as rows:
        for index, salts, erased, *entry in rows.rows():
            place = int(index) - start
            hashes[place] = _hash(EntryRow._make(entry), bytes.fromhex(salts or ""), erased)
            if place in seen:
                hashes[place] = b""
            seen.add(place)
    return hashes


def _hash(row: EntryRow, salts: bytes, erased: str | None) -> bytes:
    if len(salts) != SALTS_OCTETS:
        return b""
    if erased is None:
        return entry_hash(row, salts)
    gone = erased_parts(erased)
    return b"" if erased_wrongly(row, salts, gone) else entry_hash(row, salts, gone)


def erased_wrongly(row: EntryRow, salts: bytes, erased: Mapping[str, Any]) -> str:
    """Return what is wrong with an entry's erased parts, which its leaf does not show; empty if nothing."""
    for part, commitment in erased.items():
        if part not in ERASABLE or not _COMMITMENT.fullmatch(str(commitment)):
            return f"{part} cannot be erased"
        if getattr(row, part) != (ERASED if part == "actor_id" else None):
            return f"{part} is erased and yet shown"
        place = PARTS.index(part) * SALT_OCTETS
        if salts[place : place + SALT_OCTETS] != NO_SALT:
            return f"{part} is erased and has a salt"
    return ""


class Naming:
    """Says how the rows were changed whose hash is not the one that was sealed."""

    def __init__(self) -> None:
        self._changed: dict[int, tuple[SealedEntry, bytes]] = {}

    def flaws(self, sealed: Mapping[int, bytes], present: Mapping[int, bytes]) -> list[Flaw]:
        """Name the entries at these indexes, given the hash in the tile and that of the row as it is now."""
        first, last = min(sealed), max(sealed)
        rows = {entry.index: entry for entry in sealed_between(first, last + 1)}
        names = _entry_ids(first, last + 1)
        return [
            self._flaw(index, names.get(index, []), rows.get(index), sealed[index], present[index])
            for index in sealed
        ]

    def reconsidered(self, flaw: Flaw) -> Flaw:
        """Return the flaw; a change becomes a swap if another changed row holds what was sealed here."""
        if flaw.damage is not Damage.CHANGED or flaw.index is None or flaw.index not in self._changed:
            return flaw
        entry, sealed = self._changed[flaw.index]
        for index, (other, _) in self._changed.items():
            if index != flaw.index and _fits(entry, other.row, sealed):
                detail = f"what was sealed here is in the row at index {index}"
                return replace(flaw, damage=Damage.SWAPPED, detail=detail)
        return flaw

    def _flaw(
        self, index: int, ids: list[str], entry: SealedEntry | None, sealed: bytes, present: bytes
    ) -> Flaw:
        if not ids:
            return Flaw(Damage.MISSING, "no entry has this place", index)
        if len(ids) > 1:
            return Flaw(Damage.INSERTED, f"{len(ids)} entries have this place", index, ids[0])
        if entry is None:
            return Flaw(Damage.MISSING, "the row of the entry is gone", index, ids[0])
        if problem := erased_wrongly(entry.row, entry.salts, entry.erased):
            return Flaw(Damage.CHANGED, problem, index, ids[0])
        if len(entry.salts) != SALTS_OCTETS:
            return Flaw(Damage.CHANGED, "it does not have five salts", index, ids[0])
        for (other,) in sql.query(_PLACE, [present]) if present else ():
            return Flaw(Damage.SWAPPED, f"it was sealed at index {other}", index, ids[0])
        self._changed[index] = (entry, sealed)
        return Flaw(Damage.CHANGED, "the row or its salts are not what was sealed", index, ids[0])


def _fits(entry: SealedEntry, other: EntryRow, sealed: bytes) -> bool:
    """Whether another entry's contents, with or without its id, are what was sealed at the entry's place."""
    candidates = (other, other._replace(id=entry.row.id))
    return any(entry_hash(row, entry.salts, entry.erased) == sealed for row in candidates)


def _entry_ids(start: int, end: int) -> dict[int, list[str]]:
    rows: list[Any] = sql.query(
        "SELECT index, array_agg(entry_id::text) FROM auditlog_leaf"
        " WHERE index >= %s AND index < %s GROUP BY index",
        [start, end],
    )
    return dict(rows)
