"""A draft as PDF: each field with its number; what people have to state is marked."""

from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import Flowable, Spacer

from compliance.core.json_values import Json
from compliance.reports.pdf.frame import draw
from compliance.reports.pdf.parts import Text
from compliance.reports.pdf.styles import BODY, BOLD, HEADING, NOTE, TITLE, fonts, readable

LABEL = ParagraphStyle("label", parent=BODY, role="H3", fontName=BOLD, spaceBefore=2.5 * mm, keepWithNext=1)
# Marked by words and by a bar, not by the colour alone.
TO_STATE = ParagraphStyle(
    "to_state",
    parent=BODY,
    textColor=colors.HexColor("#8a3b00"),
    borderColor=colors.HexColor("#8a3b00"),
    backColor=colors.HexColor("#fff4e5"),
    borderPadding=2,
    leftIndent=2 * mm,
)


def render(document: Json, *, digest: str) -> bytes:
    """Return the PDF of a frozen draft; the footer of each page shows the digest of its JSON."""
    fonts()
    title = f"{document['title']}, {document['reference']}"
    return draw(_story(document), title=title, subject=document["incident_id"], digest=digest)


def _story(document: Json) -> list[Flowable]:
    filled = document["filled"]
    head = (
        f"{document['reference']}, version {document['version']}, drafted {document['drafted_at']}, "
        f"environment {document['environment']}. Form: {document['form']}. Filled from the record: "
        f"{filled['from_record']} of {filled['record_fields']} fields; to state: {filled['to_state']}."
    )
    story: list[Flowable] = [
        Text(_safe(document["title"]), TITLE),
        Text(_safe(document["notice"]), NOTE),
        Spacer(1, 3 * mm),
        Text(_safe(head), BODY),
    ]
    for section in document["sections"]:
        story.append(Text(_safe(section["title"]), HEADING))
        for field in section["fields"]:
            story += _field(field)
    return story


def _field(field: Json) -> list[Flowable]:
    label = Text(_safe(f"{field['key']} {field['label']}"), LABEL)
    if field["value"] is None:
        return [label, Text(_safe(f"To state: {field['to_state']}"), TO_STATE)]
    return [label, Text(_safe(field["value"]), BODY)]


def _safe(text: str) -> str:
    """Escape markup, and replace characters that the font lacks; nothing is shortened."""
    return escape(readable(text, most=len(text)))
