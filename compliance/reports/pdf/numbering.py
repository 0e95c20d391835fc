"""Footers with the number of pages."""

from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas

from compliance.reports.pdf.styles import MARGIN, MUTED, REGULAR, RULE


class NumberedCanvas(Canvas):
    """Writes the footers (`Page 2 of 7`) at the end, when the number of pages is known."""

    def __init__(self, *args: Any, footer: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._footer = footer
        self._pages: list[dict[str, Any]] = []

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
