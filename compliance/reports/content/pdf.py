"""A report's document as PDF; the same document gives the same bytes.

Text of tenants is escaped for reportlab's markup. Characters that the embedded font (Bitstream Vera, Latin
scripts) lacks are shown as code points; the JSON has them unchanged.
"""

import io
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any
from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.enums import TA_CENTER
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    CondPageBreak,
    Flowable,
    KeepTogether,
    LongTable,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
    Table,
)

Json = dict[str, Any]

REGULAR, BOLD = "Report", "Report-Bold"
INK, MUTED = colors.HexColor("#17202e"), colors.HexColor("#5b6675")
RULE, BAND = colors.HexColor("#cfd6df"), colors.HexColor("#f2f5f9")
STATE_COLORS = {
    "evidenced": colors.HexColor("#1c7c54"),
    "partial": colors.HexColor("#a86a00"),
    "not_evidenced": colors.HexColor("#b3261e"),
    "operator_input_required": colors.HexColor("#3355a8"),
}
MARGIN = 18 * mm
WIDTH = A4[0] - 2 * MARGIN
ROOM_FOR_HEADING = 40 * mm
MAX_CELL = 300  # the longest text of a cell, in characters: a longer one might not fit on a page


def render(document: Json, *, digest: str) -> bytes:
    """Return the PDF; the footer of each page shows `digest`, which ties it to the JSON."""
    fonts()
    out = io.BytesIO()
    title = f"{document['regulation']['name']} evidence report"
    template = SimpleDocTemplate(
        out,
        pagesize=A4,
        **dict.fromkeys(("leftMargin", "rightMargin"), MARGIN),
        **dict.fromkeys(("topMargin", "bottomMargin"), 22 * mm),
        title=title,
        author="",
        subject=document["report_id"],
        invariant=1,
    )
    template.build(_story(document, title), canvasmaker=partial(NumberedCanvas, footer=f"SHA-256 {digest}"))
    return out.getvalue()


@cache
def fonts() -> TTFont:
    """Register the fonts, once a process; return the regular one."""
    regular = TTFont(REGULAR, "Vera.ttf")
    pdfmetrics.registerFont(regular)
    pdfmetrics.registerFont(TTFont(BOLD, "VeraBd.ttf"))
    pdfmetrics.registerFontFamily(REGULAR, normal=REGULAR, bold=BOLD, italic=REGULAR, boldItalic=BOLD)
    return regular


def _style(name: str, size: float, **options: Any) -> ParagraphStyle:
    given = {"fontName": REGULAR, "leading": size * 1.4, "textColor": INK, "splitLongWords": 1, **options}
    return ParagraphStyle(name, fontSize=size, **given)


TITLE = _style("title", 20, fontName=BOLD, spaceAfter=2 * mm)
HEADING = _style("heading", 12.5, fontName=BOLD, spaceBefore=7 * mm, spaceAfter=2.5 * mm)
BODY = _style("body", 8.5)
NOTE = _style("note", 8, textColor=MUTED)
CELL = _style("cell", 7)
HEAD = _style("head", 7, fontName=BOLD, textColor=MUTED)
CHIP = _style("chip", 7, fontName=BOLD, textColor=colors.white, alignment=TA_CENTER)


class NumberedCanvas(Canvas):
    """Writes the footers (`Page 2 of 7`) at the end, when the number of pages is known."""

    def __init__(self, *args: Any, footer: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._footer = footer
        self._pages: list[Json] = []

    def showPage(self) -> None:  # noqa: N802  (reportlab's name)
        self._pages.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        for number, page in enumerate(self._pages, 1):
            self.__dict__.update(page)
            self._draw_footer(f"Page {number} of {len(self._pages)}")
            super().showPage()
        super().save()

    def _draw_footer(self, numbering: str) -> None:
        self.setStrokeColor(RULE)
        self.line(MARGIN, 15 * mm, A4[0] - MARGIN, 15 * mm)
        self.setFont(REGULAR, 6.5)
        self.setFillColor(MUTED)
        self.drawString(MARGIN, 11 * mm, self._footer)
        self.drawRightString(A4[0] - MARGIN, 11 * mm, numbering)


def _story(document: Json, title: str) -> list[Flowable]:
    return [
        Paragraph(_safe(title), TITLE),
        Paragraph(_safe(document["notice"]), NOTE),
        Spacer(1, 4 * mm),
        _facts_table(document),
        *_applications(document["regulation"]),
        *_controls(document["controls"]),
        *_archives(document["retention"]["archives"]),
        *_trend(document["trend"]),
        *_agents(document),
        *_certificates(document),
        *_high_risk(document),
        *_oversight(document),
    ]


def _facts_table(document: Json) -> Flowable:
    summary, kept = document["summary"], document["retention"]
    bands, modes = summary["events_by_band"], summary["enforcement"]
    rows = [
        ("Tenant", f"{document['tenant']['name']} ({document['tenant']['id']})"),
        ("Environment", document["environment"]),
        ("Period", f"{_when(document['period_start'])} to {_when(document['period_end'])}"),
        ("Covered", f"{_when(document['covered_from'])} to {_when(document['covered_until'])}"),
        (
            "Kept",
            f"events for {kept['event_retention_days']:,} days, "
            f"audit entries for {kept['audit_retention_days']:,} days",
        ),
        ("Generated", f"{_when(document['generated_at'])}, report {document['report_id']}"),
        ("Agents", f"{summary['agents']:,}" + ("" if document["agent_ids"] is None else " (chosen)")),
        (
            "Mode",
            f"{modes['tenant']}; agents only observed, at least partly: {modes['agents_observed']:,}; "
            f"automatic stops recorded but not made: {modes['would_have_stopped']:,}",
        ),
        ("Events", f"{summary['events']:,}: {' / '.join(_band_cells(bands))} low / medium / high"),
        ("Certificates", f"{summary['certificates']:,} in force, {summary['revocations']:,} revoked"),
        ("Delegations", f"{summary['delegations']['issued']:,} issued"),
    ]
    cells = [[Paragraph(_safe(name), HEAD), Paragraph(_safe(value), BODY)] for name, value in rows]
    style = [*_GRID, ("BACKGROUND", (0, 0), (0, -1), BAND)]
    return Table(cells, colWidths=[30 * mm, WIDTH - 30 * mm], style=style)


def _applications(regulation: Json) -> Iterable[Flowable]:
    parts = regulation["applications"]
    rows = [[part["scope"], part["applies_from"] or "see the text", part["source"]] for part in parts]
    head = ["Part", "Applies from", "Source"]
    yield from _section(f"{regulation['reference']}: dates", head, rows, [5, 2, 4])


def _controls(controls: Sequence[Json]) -> Iterable[Flowable]:
    yield Paragraph("Controls", HEADING)
    for control in controls:
        yield KeepTogether([_control(control), Spacer(1, 2.5 * mm)])


def _control(control: Json) -> Flowable:
    state = control["state"]
    title = f"<b>{_safe(control['reference'])}</b> &nbsp; {_safe(control['title'])}"
    findings = [Paragraph(_safe(control["summary"]), NOTE)]
    findings += [Paragraph(f"<b>+</b> {_safe(text)}", BODY) for text in control["evidence"]]
    findings += [Paragraph(f"<b>\u2013</b> {_safe(text)}", BODY) for text in control["gaps"]]
    chip = Paragraph(_safe(state.replace("_", " ")), CHIP)
    style = [
        ("BOX", (0, 0), (-1, -1), 0.5, RULE),
        ("BACKGROUND", (0, 0), (0, 0), BAND),
        ("BACKGROUND", (1, 0), (1, 0), STATE_COLORS[state]),
        ("SPAN", (0, 1), (1, 1)),
        ("VALIGN", (0, 0), (-1, 0), "MIDDLE"),
    ]
    cells = [[Paragraph(title, BODY), chip], [findings, ""]]
    return Table(cells, colWidths=[WIDTH - 34 * mm, 34 * mm], style=style)


def _archives(archives: Sequence[Json]) -> Iterable[Flowable]:
    rows = [
        [
            _when(row["received_from"]),
            _when(row["received_before"]),
            _when(row["dropped_at"]) if row["dropped_at"] else "\u2013",
            "yes" if row["is_stored"] else "no",
            row["archive_sha256"] or "none",
        ]
        for row in archives
    ]
    head = ["Received from", "Before", "Dropped", "Stored now", "SHA-256 of the archive"]
    yield from _section("Events archived or dropped", head, rows, [2.4, 2.4, 2.4, 1.2, 5])


def _trend(trend: Json) -> Iterable[Flowable]:
    rows = [[_when(point["from"])[:10], *_band_cells(point)] for point in trend["points"]]
    head = [trend["span"].capitalize(), "Low", "Medium", "High"]
    yield from _section("Events received, by risk band", head, rows, [3, 2, 2, 2])


def _agents(document: Json) -> Iterable[Flowable]:
    rows = [
        [
            agent["name"],
            " ".join(filter(None, (agent["model"], agent["version"]))) or "\u2013",
            agent["status"] + ("" if agent["is_certified"] else ", no certificate"),
            agent["enforcement"],
            f"{agent['risk_score']:.2f}",
            " / ".join(_band_cells(agent["events_by_band"])),
        ]
        for agent in document["agents"]
    ]
    head = ["Agent", "Model", "Status", "Mode", "Risk", "Low / medium / high"]
    title = _of("Agents", len(rows), document["summary"]["agents"])
    yield from _section(title, head, rows, [4, 3.4, 3, 1.6, 1.2, 3])


def _certificates(document: Json) -> Iterable[Flowable]:
    rows = [
        [
            item["serial_number"],
            item["status"],
            _when(item["issued_at"]),
            _when(item["revoked_at"] or item["expires_at"]),
            item["revocation_reason"] or "\u2013",
        ]
        for item in document["certificates"]
    ]
    head = ["Serial number", "Status", "Issued", "Revoked or expires", "Reason"]
    title = _of("Certificates", len(rows), document["summary"]["certificates"])
    yield from _section(title, head, rows, [4, 1.6, 2.4, 2.4, 4])


def _high_risk(document: Json) -> Iterable[Flowable]:
    rows = [
        [
            _when(event["received_at"]),
            event["action_type"],
            f"{event['risk_score']:.2f}",
            ", ".join(event["reasons"]),
            event["agent_id"],
        ]
        for event in document["high_risk_events"]
    ]
    title = _of("High-risk events", len(rows), document["summary"]["events_by_band"]["high"])
    head = ["Received", "Action", "Score", "Reasons", "Agent"]
    yield from _section(title, head, rows, [2.4, 3, 1.2, 4, 4])


def _oversight(document: Json) -> Iterable[Flowable]:
    rows = [
        [_when(act["at"]), act["what"], f"{act['actor_type']} {act['actor_id']}", act["description"]]
        for act in document["oversight"]
    ]
    yield from _section(
        "Interventions and modes", ["At", "What", "Who", "Description"], rows, [2.4, 2.6, 4, 5]
    )


def _section(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], weights: Sequence[float]
) -> Iterable[Flowable]:
    """Yield a heading and a table, whose head repeats on each page; a note if there are no rows."""
    yield CondPageBreak(ROOM_FOR_HEADING)
    yield Paragraph(_safe(title), HEADING)
    if not rows:
        yield Paragraph("None on record.", NOTE)
        return
    cells = [[Paragraph(_safe(text), HEAD) for text in head]]
    cells += [[Paragraph(_safe(text), CELL) for text in row] for row in rows]
    widths = [WIDTH * weight / sum(weights) for weight in weights]
    style = [*_GRID, ("BACKGROUND", (0, 0), (-1, 0), BAND)]
    yield LongTable(cells, colWidths=widths, repeatRows=1, style=style)


_GRID = [
    ("LINEBELOW", (0, 0), (-1, -1), 0.4, RULE),
    ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ("TOPPADDING", (0, 0), (-1, -1), 2.5),
    ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
]


def _band_cells(bands: Json) -> list[str]:
    return [f"{bands[band]:,}" for band in ("low", "medium", "high")]


def _of(title: str, listed: int, total: int) -> str:
    return title if listed == total else f"{title} ({listed:,} of {total:,} listed)"


def _when(text: str) -> str:
    """Shorten `2026-11-20T09:00:00.123Z` to `2026-11-20 09:00 UTC`."""
    return f"{text[:10]} {text[11:16]} UTC"


def _safe(text: str) -> str:
    """Escape markup, and replace characters that the font lacks."""
    known = fonts().face.charToGlyph
    shown = text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "\u2026"
    return escape(
        "".join(char if ord(char) in known or char == " " else f"[U+{ord(char):04X}]" for char in shown)
    )
