"""Formats of exports (docs/audit-log.md): JSON Lines and CSV with proofs and framing, and OCSF."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any, Final

from auditlog.exporting.ocsf import ocsf_of_entry
from auditlog.leaves import EntryRow

FORMAT: Final = "audit-log-export"
VERSION: Final = 1
COLUMNS: Final = ("record", "index", *EntryRow._fields, "salts", "erased", "proof")
_FORMULA: Final = tuple("=+-@\t\r\n'\uff1d\uff0b\uff0d\uff20")
"""Text that begins so is a formula to a spreadsheet, full-width signs included; `'` is the mark itself."""


class JsonLines:
    media_type = "application/jsonl; charset=utf-8"

    def framing(self, record: str, contents: Mapping[str, Any]) -> bytes:
        """Return the header (`export`) or the footer (`end`)."""
        return _json(contents) + b"\n"

    def entry(self, index: int, disclosure: Mapping[str, Any], path: list[str]) -> bytes:
        """Return an entry: its place, what opens its leaf, its inclusion proof in base64."""
        return _json({"index": index, "entry": disclosure, "path": path}) + b"\n"


class Csv:
    """A column a field; `'` marks a cell that a spreadsheet would run, and alone an empty text."""

    media_type = "text/csv; charset=utf-8; header=present"

    def framing(self, record: str, contents: Mapping[str, Any]) -> bytes:
        titles = _row(dict(zip(COLUMNS, COLUMNS, strict=True))) if record == "export" else b""
        cells = {**dict.fromkeys(COLUMNS), "record": record, "proof": _json(contents).decode()}
        return titles + _row(cells)

    def entry(self, index: int, disclosure: Mapping[str, Any], path: list[str]) -> bytes:
        cells = {name: disclosure.get(name) for name in COLUMNS}
        for name in ("metadata", "salts", "erased"):
            cells[name] = None if cells[name] is None else _json(cells[name]).decode()
        return _row({**cells, "record": "entry", "index": str(index), "proof": " ".join(path)})


class Ocsf:
    """One OCSF event a line, without proofs; header and footer would be lines that are no events."""

    media_type = "application/x-ndjson; charset=utf-8"

    def framing(self, record: str, contents: Mapping[str, Any]) -> bytes:
        return b""

    def entry(self, index: int, disclosure: Mapping[str, Any], path: list[str]) -> bytes:
        return _json(ocsf_of_entry(index, disclosure)) + b"\n"


Format = JsonLines | Csv | Ocsf
FORMATS: Final[Mapping[str, Format]] = {"jsonl": JsonLines(), "csv": Csv(), "ocsf": Ocsf()}


def _row(cells: Mapping[str, str | None]) -> bytes:
    out = io.StringIO()
    texts = [cells[name] for name in COLUMNS]
    csv.writer(out).writerow(
        [f"'{text}" if text == "" or (text and text.startswith(_FORMULA)) else text for text in texts]
    )
    return out.getvalue().encode()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
