"""A report's document as PDF; the same document gives the same bytes.

reportlab writes no structure tree, so the PDF is not tagged: the JSON is the form that tools read.
"""

import io
from functools import partial
from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.platypus import SimpleDocTemplate

from compliance.reports.pdf.numbering import NumberedCanvas
from compliance.reports.pdf.sections import story
from compliance.reports.pdf.styles import MARGIN, fonts

Json = dict[str, Any]


def render(document: Json, *, digest: str, fingerprint: str) -> bytes:
    """Return the PDF; `digest` is that of the JSON, `fingerprint` of the key that signs the manifest."""
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
        lang="en",
        invariant=1,
    )
    footer = partial(NumberedCanvas, footer=f"SHA-256 {digest}")
    template.build(story(document, title, digest=digest, fingerprint=fingerprint), canvasmaker=footer)
    return out.getvalue()
