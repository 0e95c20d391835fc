"""The parts of a PDF (texts, tables, figures), each of which marks its content with what it is."""

from collections.abc import Iterable, Sequence
from typing import Any

from reportlab.graphics.shapes import Drawing
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase.pdfdoc import PDFArray, PDFName
from reportlab.platypus import Flowable, KeepTogether, LongTable, Paragraph

from compliance.reports.pdf.structure import Element
from compliance.reports.pdf.styles import REGULAR

ITEM = "LI"
EMBEDDED = ("FONTNAME", (0, 0), (-1, -1), REGULAR)  # reportlab's own is Helvetica, which it doesn't embed


class Marked(Flowable):
    """A part that belongs to an element of the structure.

    The head of a table is drawn again on each page: from the second time on it is an artifact, which
    readers of the structure skip.
    """

    element: Element | None = None

    def drawOn(self, canvas: Any, x: float, y: float, _sW: float = 0) -> None:  # noqa: N802, N803  (reportlab's)
        element, self.element = self.element, None
        with canvas.marked(element):
            self.mark(canvas, element, x, y)
            super().drawOn(canvas, x, y, _sW)

    def mark(self, canvas: Any, element: Element | None, x: float, y: float) -> None:
        """Add what is known of the element only when it is drawn."""


class Text(Marked, Paragraph):
    """A paragraph of reportlab's markup; `style.role` says what it is, and headings are bookmarked."""

    def __init__(self, text: str | None, style: ParagraphStyle, role: str = "", **options: Any) -> None:
        super().__init__(text, style, **options)
        self.role = role or style.role

    def split(self, availWidth: float, availHeight: float) -> list[Any]:  # noqa: N803  (reportlab's names)
        parts: list[Any] = super().split(availWidth, availHeight)
        for part in parts:
            part.element, part.role = self.element, self.role
        return parts

    def mark(self, canvas: Any, element: Element | None, x: float, y: float) -> None:
        if element is not None and not element.kids[1:] and self.role in ("H1", "H2"):
            canvas.bookmark(self.getPlainText(), int(self.role[1]) - 1, x, y + self.height)


class Figure(Marked):
    """A drawing, with what it shows in words."""

    role = "Figure"

    def __init__(self, drawing: Drawing, alt: str) -> None:
        super().__init__()
        self.drawing, self.alt = drawing, alt

    def wrap(self, availWidth: float, availHeight: float) -> tuple[float, float]:  # noqa: N803
        self.width, self.height = self.drawing.wrap(availWidth, availHeight)
        return self.width, self.height

    def draw(self) -> None:
        self.drawing.drawOn(self.canv, 0, 0)

    def mark(self, canvas: Any, element: Element | None, x: float, y: float) -> None:
        if element is not None:
            left, bottom = canvas.absolutePosition(x, y)
            box = PDFArray([left, bottom, left + self.width, bottom + self.height])
            element.attributes["Layout"] = {"BBox": box}


class Grid(LongTable):
    """A table. `scope`: whether its first `Row` or its first `Column` has the heads; None: only a layout."""

    scope: str | None = None


def grid(
    cells: Sequence[Sequence[Any]], *, style: Sequence[Any], scope: str | None = None, **options: Any
) -> Grid:
    """Make a table; its first row heads the columns (`Column`), or its first column the rows (`Row`)."""
    made = Grid(cells, renderCB=_furniture, style=[EMBEDDED, *style], **options)
    made.scope = scope
    return made


def _furniture(table: Grid, step: str, *_: Any) -> None:
    """Mark the backgrounds and rules of a table as artifacts."""
    if step in ("startBG", "startLines"):
        table.canv.open_mark(None)
    elif step in ("endBG", "endLines"):
        table.canv.close_mark()


def outline(story: Iterable[Any], parent: Element) -> None:
    """Add an element for each part, in order; items that follow one another are one list."""
    items: Element | None = None
    for part in story:
        if isinstance(part, Text) and part.role == ITEM:
            items = items or parent.add("L")
            part.element = items.add(ITEM).add("LBody")
            continue
        items = None
        if isinstance(part, Text):
            part.element = parent.add(part.role)
        elif isinstance(part, Figure):
            part.element = parent.add(part.role, alt=part.alt)
        elif isinstance(part, Grid):
            _outline_grid(part, parent)
        elif isinstance(part, KeepTogether):
            outline(part._content, parent)


def _outline_grid(table: Grid, parent: Element) -> None:
    rows = table._cellvalues
    if table.scope is None:
        for cell in (cell for row in rows for cell in row):
            outline(cell if isinstance(cell, list) else [cell], parent)
        return
    element = parent.add("Table")
    for number, row in enumerate(rows):
        line = element.add("TR")
        for place, cell in enumerate(row):
            is_head = (number if table.scope == "Column" else place) == 0
            scope = {"Table": {"Scope": PDFName(table.scope)}} if is_head else {}
            cell.element = line.add("TH" if is_head else "TD", attributes=scope)
