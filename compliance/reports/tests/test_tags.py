"""The structure of the PDFs, read by pypdf: what a screen reader has instead of the look."""

import io
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from pypdf import PdfReader
from pypdf.generic import ContentStream

from compliance.reports.content.builder import build
from compliance.reports.notifications import pdf as notification
from compliance.reports.tests.factories import draw, make_agent_fact, make_busy_facts, make_frame
from compliance.reports.vocabulary import ReportType

SHOWS = (b"Tj", b"TJ", b"'", b'"', b"f", b"f*", b"S", b"s", b"B", b"B*", b"b", b"Do", b"sh")


@cache
def make_report() -> PdfReader:
    """A report whose table of agents covers several pages."""
    facts = make_busy_facts(agents=tuple(make_agent_fact(name=f"agent {number}") for number in range(90)))
    return PdfReader(io.BytesIO(draw(build(ReportType.EU_AI_ACT, make_frame(), facts))))


@cache
def make_notification() -> PdfReader:
    fields = [
        {"key": "1.1", "label": "What happened", "value": "word " * 2_000, "to_state": None},
        {"key": "1.2", "label": "Costs", "value": None, "to_state": "What people know"},
    ]
    document = {
        **dict.fromkeys(("reference", "drafted_at", "environment", "form", "notice", "incident_id"), "x"),
        "title": "Serious incident <report>",
        "version": 1,
        "filled": {"from_record": 1, "record_fields": 1, "to_state": 1},
        "sections": [{"title": "The incident", "fields": fields}],
    }
    return PdfReader(io.BytesIO(notification.render(document, digest="ab" * 32)))


def walk(element: Any) -> Iterator[Any]:
    """Yield an element and all below it, in reading order."""
    yield element
    for kid in element.get("/K", []):
        found = kid.get_object()
        if found.get("/Type") == "/StructElem":
            yield from walk(found)


def elements(reader: PdfReader) -> list[Any]:
    tree: Any = reader.root_object["/StructTreeRoot"]
    return list(walk(tree["/K"].get_object()))


def contents(reader: PdfReader) -> dict[tuple[int, int], str]:
    """Map page and number of each piece of marked content to its role; everything drawn is in one."""
    found = {}
    for number, page in enumerate(reader.pages):
        opened: list[str] = []
        for operands, operator in ContentStream(page.get_contents(), reader).operations:
            if operator in (b"BDC", b"BMC"):
                opened.append(operands[0])
                if operator == b"BDC":
                    found[number, int(operands[1]["/MCID"])] = operands[0]
            elif operator == b"EMC":
                opened.pop()
            elif operator in SHOWS:
                assert len(opened) == 1, (number, operator, operands)
        assert not opened
    return found


@pytest.mark.parametrize("make", [make_report, make_notification])
def test_everything_drawn_is_an_artifact_or_belongs_to_one_element(make: Any) -> None:
    reader = make()
    tree: Any = reader.root_object["/StructTreeRoot"]
    pages = {page.indirect_reference.idnum: number for number, page in enumerate(reader.pages)}

    owners = {
        (pages[mark.raw_get("/Pg").idnum], mark["/MCID"]): element
        for element in elements(reader)
        for mark in (kid.get_object() for kid in element["/K"])
        if mark["/Type"] == "/MCR"
    }
    numbers = tree["/ParentTree"]["/Nums"]
    parents = dict(zip(numbers[::2], numbers[1::2], strict=True))

    assert contents(reader) == {place: element["/S"] for place, element in owners.items()}
    for (page, number), element in owners.items():
        listed = parents[reader.pages[page]["/StructParents"]].get_object()
        assert listed[number].get_object() is element


@pytest.mark.parametrize("make", [make_report, make_notification])
def test_document_says_its_language_title_and_that_it_is_tagged(make: Any) -> None:
    reader = make()
    root, packet = reader.root_object, reader.xmp_metadata

    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"
    assert root["/ViewerPreferences"]["/DisplayDocTitle"]
    assert packet.dc_title["x-default"] == reader.metadata.title
    assert "/Helvetica" not in {
        font.get_object()["/BaseFont"]
        for page in reader.pages
        for font in page["/Resources"]["/Font"].values()
    }


def test_table_over_several_pages_is_one_whose_head_is_read_once() -> None:
    reader = make_report()
    tables = [element for element in elements(reader) if element["/S"] == "/Table"]

    agents = max(tables, key=lambda table: len(table["/K"]))
    rows = [row.get_object()["/K"] for row in agents["/K"]]
    heads = [cell.get_object() for cell in rows[0]]
    cells = [cell.get_object() for row in rows[1:] for cell in row]

    assert len(rows) == 91
    assert {len(row) for row in rows} == {6}
    assert {(head["/S"], head["/A"][0]["/Scope"], len(head["/K"])) for head in heads} == {
        ("/TH", "/Column", 1)
    }
    assert {cell["/S"] for cell in cells} == {"/TD"}
    assert len({cell["/K"][0].get_object().raw_get("/Pg").idnum for cell in cells}) > 1


def test_facts_have_heads_of_rows_and_findings_are_lists() -> None:
    found = elements(make_report())
    facts = next(element for element in found if element["/S"] == "/Table")
    listed = next(element for element in found if element["/S"] == "/L")

    head, value = (cell.get_object() for cell in facts["/K"][0].get_object()["/K"])

    assert (head["/S"], head["/A"][0]["/Scope"], value["/S"]) == ("/TH", "/Row", "/TD")
    assert {item.get_object()["/S"] for item in listed["/K"]} == {"/LI"}
    assert listed["/K"][0].get_object()["/K"][0].get_object()["/S"] == "/LBody"


def test_plots_are_told_in_words() -> None:
    figures = [element for element in elements(make_report()) if element["/S"] == "/Figure"]

    assert ["Stacked columns" in figures[0]["/Alt"], "10 riskiest agents" in figures[1]["/Alt"]] == [
        True,
        True,
    ]
    assert all(len(figure["/A"][0]["/BBox"]) == 4 for figure in figures)


def test_headings_skip_no_level_and_are_bookmarks() -> None:
    reader: Any = make_report()
    levels = [int(role[2]) for role in (element["/S"] for element in elements(reader)) if role[1] == "H"]

    ((title, marks),) = [reader.outline[:2]]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    assert title.title == reader.metadata.title
    assert len(marks) == levels.count(2)
    assert [reader.get_destination_page_number(mark) for mark in (marks[0], marks[-1])] == [
        0,
        len(reader.pages) - 1,
    ]


def test_paragraph_over_two_pages_is_one_element_and_its_words_stay_apart() -> None:
    reader = make_notification()
    paragraphs = [element for element in elements(reader) if element["/S"] == "/P"]

    longest = max(paragraphs, key=lambda element: len(element["/K"]))

    assert len({mark.get_object().raw_get("/Pg").idnum for mark in longest["/K"]}) > 1
    assert "wordword" not in "".join(page.extract_text() for page in reader.pages)
