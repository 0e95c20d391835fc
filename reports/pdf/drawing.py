"""Drawing of a PDF by Typst: tagged (PDF/UA-1), with the digest and the page numbers in the footers."""

import json
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import typst

from compliance.core.json_values import Json

PAGE: Final = Path(__file__).with_name("page.typ").read_bytes()
_DRAWN: Final = (("\u0020", "\u04ff"), ("\u1e00", "\u1fff"), ("\u2010", "\u2027"), ("€", "€"))


def draw(blocks: Sequence[Json], *, title: str, subject: str, digest: str, made_at: datetime) -> bytes:
    """Return the PDF of these blocks, whose kinds `page.typ` has; the same blocks give the same bytes."""
    data = {"title": title, "subject": subject, "footer": f"SHA-256 {digest}", "blocks": blocks}
    drawn: bytes = typst.compile(
        PAGE,
        format="pdf",
        sys_inputs={"data": json.dumps(_readable(data))},
        ignore_system_fonts=True,
        pdf_standards=["ua-1"],
        timestamp=int(made_at.timestamp()),
    )
    return drawn


def _readable(value: Any) -> Any:
    """Replace what Typst's own fonts may lack by code points; the JSON has it unchanged."""
    if isinstance(value, str):
        return "".join(char if _is_drawn(char) else f"[U+{ord(char):04X}]" for char in value)
    if isinstance(value, dict):
        return {name: _readable(item) for name, item in value.items()}
    return [_readable(item) for item in value] if isinstance(value, list | tuple) else value


def _is_drawn(char: str) -> bool:
    """Return whether it is a visible sign of the Latin, Greek or Cyrillic script, or a space."""
    is_known = any(first <= char <= last for first, last in _DRAWN)
    return is_known and (unicodedata.category(char)[0] in "LMNPS" or char in " \N{NO-BREAK SPACE}")
