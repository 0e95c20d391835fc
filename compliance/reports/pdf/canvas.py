"""The canvas of a tagged PDF, with its footers and bookmarks."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.pdfgen.textobject import PDFTextObject

from compliance.reports.pdf.metadata import packet
from compliance.reports.pdf.structure import Element, Mark, StructureTree
from compliance.reports.pdf.styles import LANGUAGE, MARGIN, MUTED, REGULAR, RULE


class SpacedText(PDFTextObject):
    """Ends each line of a paragraph with a space, which keeps words apart for those who do not see lines."""

    def _textOut(self, text: Any, TStar: Any = 0) -> None:  # noqa: N802, N803  (reportlab's names)
        space = b" " if isinstance(text, bytes) else " "
        super()._textOut(text + space if TStar else text, TStar)


class TaggedCanvas(Canvas):
    """Ties what is drawn to the elements of a structure, and writes the structure at the end.

    Footers (`Page 2 of 7`) and bookmarks are written at the end as well, when all pages are known.
    """

    def __init__(self, *args: Any, footer: str, root: Element, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._footer = footer
        self._root = root
        self._finished: list[dict[str, Any]] = []
        self._marked: defaultdict[int, list[Element]] = defaultdict(list)
        self._bookmarks: defaultdict[int, list[tuple[str, int, float, float]]] = defaultdict(list)

    @contextmanager
    def marked(self, element: Element | None) -> Iterator[None]:
        """Mark what is drawn inside as content of the element, or without one as an artifact."""
        self.open_mark(element)
        yield
        self.close_mark()

    def beginText(self, x: float = 0, y: float = 0, direction: str | None = None) -> SpacedText:  # noqa: N802
        return SpacedText(self, x, y, direction)

    def open_mark(self, element: Element | None) -> None:
        if element is None:
            self._code.append("/Artifact BMC")
            return
        page = self._marked[self._pageNumber]
        self._code.append(f"/{element.role} <</MCID {len(page)}>> BDC")
        element.kids.append(Mark(self._pageNumber, len(page)))
        page.append(element)

    def close_mark(self) -> None:
        self._code.append("EMC")

    def bookmark(self, text: str, level: int, x: float, y: float) -> None:
        """List a place of the current page in the document's outline; 0 is the highest level."""
        self._bookmarks[self._pageNumber].append((text, level, *self.absolutePosition(x, y)))

    def showPage(self) -> None:  # noqa: N802  (reportlab's name)
        self._finished.append(dict(self.__dict__))
        self._startPage()

    def save(self) -> None:
        for number, page in enumerate(self._finished, 1):
            self.__dict__.update(page)
            self._draw_footer(f"Page {number} of {len(self._finished)}")
            for place, (text, level, left, top) in enumerate(self._bookmarks[number]):
                key = f"{number}-{place}"
                self.bookmarkHorizontalAbsolute(key, top, left)
                self.addOutlineEntry(text, key, level)
            super().showPage()
        StructureTree(self._doc, self._marked).write(self._root)
        self._doc.Catalog.Metadata = packet(title=self._doc.info.title, language=LANGUAGE)
        super().save()

    def _draw_footer(self, numbering: str) -> None:
        with self.marked(None):
            self.setStrokeColor(RULE)
            self.line(MARGIN, 15 * mm, A4[0] - MARGIN, 15 * mm)
            self.setFont(REGULAR, 6.5)
            self.setFillColor(MUTED)
            self.drawString(MARGIN, 11 * mm, self._footer)
            self.drawRightString(A4[0] - MARGIN, 11 * mm, numbering)
