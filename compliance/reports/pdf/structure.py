"""The logical structure of a PDF (ISO 32000-1, 14.7 and 14.8): what its parts are, in reading order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reportlab.pdfbase.pdfdoc import (
    PDFArray,
    PDFDictionary,
    PDFDocument,
    PDFName,
    PDFObjectReference,
    PDFPage,
    PDFString,
)


@dataclass(frozen=True)
class Mark:
    """A piece of marked content: the number of its page, from 1, and its number on that page."""

    page: int
    number: int


@dataclass(eq=False)
class Element:
    """A part of the document by its standard role (`H1`, `TD`); `kids` are parts and pieces of content.

    `attributes` are PDF objects by owner and name. `alt` says in words what a figure shows.
    """

    role: str
    alt: str = ""
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    kids: list["Element | Mark"] = field(default_factory=list)

    def add(self, role: str, **options: Any) -> "Element":
        """Append a part and return it."""
        part = Element(role, **options)
        self.kids.append(part)
        return part


class StructureTree:
    """Writes a structure into a reportlab document whose pages are complete."""

    def __init__(self, document: PDFDocument, marked: Mapping[int, Sequence[Element]]) -> None:
        """Take the elements of each page's marked content, by the number of the page."""
        self._document = document
        self._marked = marked
        self._pages: list[PDFPage] = document.Pages.pages
        self._written: dict[Element, PDFObjectReference] = {}

    def write(self, root: Element) -> None:
        """Add the tree and, for each page, which element each piece of its content belongs to."""
        tree = PDFDictionary({"Type": PDFName("StructTreeRoot")})
        reference = self._document.Reference(tree)
        tree["K"] = self._write(root, reference)
        tree["ParentTree"] = self._document.Reference(self._parents())
        tree["ParentTreeNextKey"] = len(self._pages)
        self._document.Catalog.StructTreeRoot = tree
        self._document.Catalog.MarkInfo = PDFDictionary({"Marked": "true"})

    def _write(self, element: Element, parent: PDFObjectReference) -> PDFObjectReference:
        entry = PDFDictionary({"Type": PDFName("StructElem"), "S": PDFName(element.role), "P": parent})
        reference = self._written[element] = self._document.Reference(entry)
        if element.alt:
            entry["Alt"] = PDFString(element.alt)
        if element.attributes:
            owned = [PDFDictionary({"O": PDFName(owner), **own}) for owner, own in element.attributes.items()]
            entry["A"] = PDFArray(owned)
        entry["K"] = PDFArray(
            [
                self._write(kid, reference) if isinstance(kid, Element) else self._content(kid)
                for kid in element.kids
            ]
        )
        return reference

    def _content(self, mark: Mark) -> PDFDictionary:
        page = self._document.Reference(self._pages[mark.page - 1])
        return PDFDictionary({"Type": PDFName("MCR"), "Pg": page, "MCID": mark.number})

    def _parents(self) -> PDFDictionary:
        numbers: list[Any] = []
        for key, page in enumerate(self._pages):
            page.__NoDefault__ = [*page.__NoDefault__, "StructParents"]  # reportlab writes what this lists
            page.StructParents = key
            owners = PDFArray([self._written[element] for element in self._marked.get(key + 1, ())])
            numbers += [key, self._document.Reference(owners)]
        return PDFDictionary({"Nums": PDFArray(numbers)})
