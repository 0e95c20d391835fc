"""The two formats of an export, written and read: JSON Lines and CSV. `docs/audit-log.md` describes them.

Both begin with a header and end with a footer, which counts the entries and hashes all octets before it. In
CSV a row of column names stands before, and the first column tells header, entries and footer apart.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, Protocol

from auditlog.leaves import EntryRow
from auditlog.tlog.errors import Malformed

FORMAT: Final = "audit-log-export"
VERSION: Final = 1
HEADER, ENTRY, FOOTER = "export", "entry", "end"
COLUMNS: Final = ("record", "index", *EntryRow._fields, "salts", "erased", "proof")
_JSON_COLUMNS: Final = ("metadata", "salts", "erased")
_FORMULA: Final = tuple("=+-@\t\r\n'\uff1d\uff0b\uff0d\uff20")
"""Text that begins so is a formula to a spreadsheet, full-width signs included; `'` is the mark itself."""
_LONGEST_CELL: Final = 16 * 1024 * 1024


class Format(Protocol):
    """Writes each part of an export."""

    media_type: str

    def header(self, header: Mapping[str, Any]) -> bytes:
        """Return what stands before the entries."""

    def entry(self, index: int, disclosure: Mapping[str, Any], path: list[str]) -> bytes:
        """Return an entry: its place, what opens its leaf, its inclusion proof in base64."""

    def footer(self, footer: Mapping[str, Any]) -> bytes:
        """Return what stands after the entries."""


class JsonLines:
    """One JSON object a line."""

    media_type = "application/jsonl; charset=utf-8"

    def header(self, header: Mapping[str, Any]) -> bytes:
        return _json(header) + b"\n"

    def entry(self, index: int, disclosure: Mapping[str, Any], path: list[str]) -> bytes:
        return _json({"index": index, "entry": disclosure, "path": path}) + b"\n"

    def footer(self, footer: Mapping[str, Any]) -> bytes:
        return _json(footer) + b"\n"


class Csv:
    """A column for each field; a cell that a spreadsheet would take for a formula has a `'` before it.

    Nothing is an empty cell, and an empty text is a lone `'`.
    """

    media_type = "text/csv; charset=utf-8; header=present"

    def header(self, header: Mapping[str, Any]) -> bytes:
        return _row(dict(zip(COLUMNS, COLUMNS, strict=True))) + _row(_framing(HEADER, header))

    def entry(self, index: int, disclosure: Mapping[str, Any], path: list[str]) -> bytes:
        cells = {name: disclosure.get(name) for name in COLUMNS}
        cells |= {name: _text(cells[name]) for name in _JSON_COLUMNS}
        return _row({**cells, "record": ENTRY, "index": str(index), "proof": " ".join(path)})

    def footer(self, footer: Mapping[str, Any]) -> bytes:
        return _row(_framing(FOOTER, footer))


FORMATS: Final[Mapping[str, Format]] = {"jsonl": JsonLines(), "csv": Csv()}


class ExportReader:
    """Reads an export of either format line by line. Raises: Malformed, ValueError (not JSON, not UTF-8)."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = iter(lines)
        self._hash, self._last = sha256(), b""
        self._form: Format = FORMATS["jsonl"]

    def ends_with_footer(self, entries: int) -> bool:
        """Whether the line read last is the footer after so many entries, to the octet."""
        return self._last == self._form.footer({"entries": entries, "sha256": self._hash.hexdigest()})

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield header, entries and footer as in JSON Lines."""
        first = next(self._read(), b"")
        if first.startswith(b"{"):
            yield _parsed(first.decode())
            yield from (_parsed(line.decode()) for line in self._read())
        elif first == self._columns():
            self._form = FORMATS["csv"]
            csv.field_size_limit(_LONGEST_CELL)
            yield from map(_record, csv.reader((line.decode() for line in self._read()), strict=True))
        else:
            raise Malformed("Not an export: neither JSON nor the names of its columns")

    def _columns(self) -> bytes:
        return _row(dict(zip(COLUMNS, COLUMNS, strict=True)))

    def _read(self) -> Iterator[bytes]:
        for line in self._lines:
            self._hash.update(self._last)
            self._last = line
            yield line


def _record(row: list[str]) -> dict[str, Any]:
    if len(row) != len(COLUMNS):
        raise Malformed(f"A row of {len(row)} cells")
    cells = dict(zip(COLUMNS, map(_read_cell, row), strict=True))
    record, index, proof = (cells.pop(name) for name in ("record", "index", "proof"))
    if record in (HEADER, FOOTER):
        framing: dict[str, Any] = _parsed(proof or "")
        return framing
    entry = {**cells, **{name: _parsed(cells[name] or "null") for name in _JSON_COLUMNS}}
    if entry["erased"] is None:
        del entry["erased"]
    return {"index": int(index or ""), "entry": entry, "path": (proof or "").split()}


def _framing(record: str, contents: Mapping[str, Any]) -> dict[str, str | None]:
    return {**dict.fromkeys(COLUMNS), "record": record, "proof": _json(contents).decode()}


def _row(cells: Mapping[str, str | None]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow([_cell(cells[name]) for name in COLUMNS])
    return out.getvalue().encode()


def _cell(text: str | None) -> str:
    if text is None:
        return ""
    return f"'{text}" if not text or text.startswith(_FORMULA) else text


def _read_cell(cell: str) -> str | None:
    return cell.removeprefix("'") if cell else None


def _text(value: Any) -> str | None:
    return None if value is None else _json(value).decode()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed("A name twice in one object")
    return found
