"""The frame of every PDF: A4 pages, tagged, with the digest and the number of pages in the footers."""

import io
from collections.abc import Sequence
from functools import partial

from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.platypus import Flowable, SimpleDocTemplate

from compliance.reports.pdf.canvas import TaggedCanvas
from compliance.reports.pdf.parts import outline
from compliance.reports.pdf.structure import Element
from compliance.reports.pdf.styles import LANGUAGE, MARGIN, REGULAR, fonts


def draw(story: Sequence[Flowable], *, title: str, subject: str, digest: str) -> bytes:
    """Return the PDF of these parts; the same parts give the same bytes."""
    fonts()
    root = Element("Document")
    outline(story, root)
    out = io.BytesIO()
    template = SimpleDocTemplate(
        out,
        pagesize=A4,
        **dict.fromkeys(("leftMargin", "rightMargin"), MARGIN),
        **dict.fromkeys(("topMargin", "bottomMargin"), 22 * mm),
        title=title,
        author="",
        subject=subject,
        lang=LANGUAGE,
        displayDocTitle=True,
        initialFontName=REGULAR,
        invariant=1,
    )
    template.build(list(story), canvasmaker=partial(TaggedCanvas, footer=f"SHA-256 {digest}", root=root))
    return out.getvalue()
