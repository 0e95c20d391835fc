"""Sealed entries as the canonical encoding needs them, read from the database in the order of the tree."""

import json
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from auditlog.leaves import EntryRow, disclosure, leaf_data
from auditlog.tlog.merkle import leaf_hash
from compliance.stores import sql

COLUMNS: Final = """e.id::text, e.tenant_id::text, e.event_type, e.actor_type, e.actor_kind,
    to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    e.actor_id, e.affected_id, e.description, e.metadata::text"""
"""Select these of `auditlog_auditentry e`, last in the list; `entry_row` reads them."""
_WIDTH: Final = len(EntryRow._fields)
_COLUMNS: Final = f"l.index, l.salts, l.erased::text, {COLUMNS}"
_SEALED: Final = (
    f"SELECT {_COLUMNS} FROM auditlog_leaf l"  # noqa: S608  (names of ours)
    " JOIN auditlog_auditentry e ON e.id = l.entry_id"
)


@dataclass(slots=True)
class SealedEntry:
    """An entry at its place in the tree; `erased` maps its erased parts to their commitments."""

    index: int
    row: EntryRow
    salts: bytes
    erased: dict[str, str]

    def leaf(self) -> bytes:
        return leaf_data(self.row, self.salts, self.erased)

    def hash(self) -> bytes:
        return leaf_hash(self.leaf())

    def disclosure(self) -> dict[str, Any]:
        return disclosure(self.row, self.salts, self.erased)


def entry_row(row: Sequence[Any]) -> EntryRow:
    return EntryRow._make(row[-_WIDTH:])


def sealed_between(start: int, end: int) -> list[SealedEntry]:
    """Return the entries from index `start` to before `end` whose contents are there."""
    rows = sql.query(f"{_SEALED} WHERE l.index >= %s AND l.index < %s ORDER BY l.index", [start, end])
    return list(map(sealed_entry, rows))


def sealed_entry_of(entry_id: UUID) -> SealedEntry | None:
    """Return the entry at its place; None while it is not sealed."""
    rows = sql.prepared(f"{_SEALED} WHERE l.entry_id = %s", [entry_id])
    return sealed_entry(rows[0]) if rows else None


def sealed_among(
    entries: str, params: Sequence[Any], *, before: int, most: int
) -> Generator[list[SealedEntry], None, None]:
    """Yield `entries`, an SQL query for all their columns, in the tree's order up to `before`."""
    joined = f"FROM auditlog_leaf l JOIN ({entries}) e ON e.id = l.entry_id"
    statement = f"SELECT {_COLUMNS} {joined} WHERE l.index < %s ORDER BY l.index"
    with closing(sql.streamed(statement, [*params, before], most=most)) as found:
        for rows in found:
            yield list(map(sealed_entry, rows))


def sealed_entry(row: Sequence[Any]) -> SealedEntry:
    index, salts, erased = row[:3]
    found = {} if erased is None else json.loads(erased)
    # What is no object counts as a part without a name.
    parts = found if isinstance(found, dict) else {"": found}
    return SealedEntry(index, entry_row(row), bytes(salts or b""), parts)
