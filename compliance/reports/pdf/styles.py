"""Fonts, styles and the safe text of the PDF.

Noto Sans and Ubuntu Mono are embedded: Noto Sans has every letter of the Latin, Greek and Cyrillic scripts.
Other characters are shown as code points; the JSON has them unchanged. Text of tenants is escaped for
reportlab's markup. A style has the role of its texts in the structure of the PDF.
"""

import io
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

from pymupdf_fonts import NotoSans_Bold, NotoSans_Regular, UbuntuMono_Regular
from reportlab.lib import colors
from reportlab.lib.enums import TA_CENTER
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.pdfdoc import PDFDocument
from reportlab.pdfbase.ttfonts import TTFont

REGULAR, BOLD, FIXED = "Report", "Report-Bold", "Report-Fixed"
LANGUAGE = "en"
INK, MUTED = colors.HexColor("#17202e"), colors.HexColor("#5b6675")
RULE, BAND = colors.HexColor("#cfd6df"), colors.HexColor("#f2f5f9")
STATE_COLORS = {
    "evidenced": colors.HexColor("#1c7c54"),
    "partial": colors.HexColor("#8a5600"),
    "not_evidenced": colors.HexColor("#b3261e"),
    "operator_input_required": colors.HexColor("#3355a8"),
}
# Okabe and Ito's palette, which colour-blind people can tell apart.
BAND_COLORS = {
    "low": colors.HexColor("#56b4e9"),
    "medium": colors.HexColor("#e69f00"),
    "high": colors.HexColor("#d55e00"),
}
MARGIN = 18 * mm
WIDTH = A4[0] - 2 * MARGIN
ROOM_FOR_HEADING = 40 * mm
MAX_CELL = 300  # the longest text of a cell, in characters: a longer one might not fit on a page
GRID = [
    ("LINEBELOW", (0, 0), (-1, -1), 0.4, RULE),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ("TOPPADDING", (0, 0), (-1, -1), 2.5),
    ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
]


class EmbeddedFont(TTFont):
    """A font whose unused codes mean U+FFFD; reportlab lets them mean U+0000, which PDF/UA forbids."""

    def addObjects(self, doc: PDFDocument) -> None:  # noqa: N802  (reportlab's name)
        super().addObjects(doc)
        for name, part in doc.idToObject.items():
            if name.startswith("toUnicodeCMap:"):
                part.content = part.content.replace("> <0000>", "> <FFFD>")


@cache
def fonts() -> TTFont:
    """Register the fonts, once a process; return the regular one."""
    files = {REGULAR: NotoSans_Regular, BOLD: NotoSans_Bold, FIXED: UbuntuMono_Regular}
    for name, file in files.items():
        pdfmetrics.registerFont(EmbeddedFont(name, io.BytesIO(file.fontbuffer)))
    pdfmetrics.registerFontFamily(REGULAR, normal=REGULAR, bold=BOLD, italic=REGULAR, boldItalic=BOLD)
    return pdfmetrics.getFont(REGULAR)


def _style(name: str, size: float, **options: Any) -> ParagraphStyle:
    given = {"fontName": REGULAR, "leading": size * 1.4, "textColor": INK, "splitLongWords": 1}
    given |= {"role": "P", **options}
    return ParagraphStyle(name, fontSize=size, **given)


TITLE = _style("title", 20, role="H1", fontName=BOLD, spaceAfter=2 * mm)
HEADING = _style("heading", 12.5, role="H2", fontName=BOLD, spaceBefore=7 * mm, spaceAfter=2.5 * mm)
BODY = _style("body", 8.5)
NOTE = _style("note", 8, textColor=MUTED)
CONTROL = _style("control", 8.5, role="H3")
CELL = _style("cell", 7)
HEAD = _style("head", 7, fontName=BOLD, textColor=MUTED)
MONO = _style("mono", 7.2, fontName=FIXED, leftIndent=3 * mm, spaceBefore=1 * mm, spaceAfter=1 * mm)
CHIP = _style("chip", 7, fontName=BOLD, textColor=colors.white, alignment=TA_CENTER)


def safe(text: str) -> str:
    """Escape markup, and replace characters that the font lacks."""
    return escape(readable(text))


def readable(text: str, most: int = MAX_CELL) -> str:
    """Shorten a text, and replace characters that the font lacks."""
    known = fonts().face.charToGlyph
    shown = text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
    return "".join(char if ord(char) in known or char == " " else f"[U+{ord(char):04X}]" for char in shown)


def when(text: str) -> str:
    """Shorten `2026-11-20T09:00:00.123Z` to `2026-11-20 09:00 UTC`."""
    return f"{text[:10]} {text[11:16]} UTC"
