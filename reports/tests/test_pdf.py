"""The PDFs as readers and screen readers have them: text, structure, and the published schema."""

import io
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings, strategies as st
from jsonschema_rs import Draft202012Validator
from pypdf import PdfReader

from reports.content.builder import SCHEMA, build
from reports.content.facts import Facts
from reports.notifications.console import as_pdf
from reports.pdf.sections import DIGESTS, FINGERPRINT, SIGNATURE
from reports.tests.factories import AGENT_ID, NOW, draw, make_agent_fact, make_busy_facts, make_frame
from reports.vocabulary import ReportType

KINDS = pytest.mark.parametrize("kind", ReportType)
WORLDS = pytest.mark.parametrize("facts", [Facts(), make_busy_facts()], ids=["empty", "busy"])


def text_of(document: dict[str, Any]) -> str:
    pages = PdfReader(io.BytesIO(draw(document))).pages
    return " ".join(" ".join(page.extract_text() for page in pages).split())


@pytest.mark.parametrize(
    "name",
    ["Łódź Žižka Őrség Ðæg İzmir", "Αθήνα ᾠδή Ὅμηρος", "Київ Ґалаґан Ђорђе Љубав", "naïve café €5"],
)
def test_letters_of_european_scripts_are_text_of_the_pdf(name: str) -> None:
    facts = make_busy_facts(agents=(make_agent_fact(name=name),))

    assert name in text_of(build(ReportType.MICA, make_frame(tenant_name=name), facts))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<b>bold</b><para>", "<b>bold</b><para>"),
        ("#panic() *a* $x$ @b", "#panic() *a* $x$ @b"),
        ("&amp; &#0;", "&amp; &#0;"),
        ("a\u202eb", "a[U+202E]b"),
        ("a\nb", "a[U+000A]b"),
        ("山", "[U+5C71]"),
    ],
)
def test_hostile_names_are_shown_and_not_obeyed(name: str, shown: str) -> None:
    document = build(ReportType.MICA, make_frame(tenant_name=name), make_busy_facts())

    assert f"Tenant {shown} (" in text_of(document)
    assert document["tenant"]["name"] == name


@settings(max_examples=15)
@given(name=st.text(max_size=255))
def test_no_name_breaks_the_pdf(name: str) -> None:
    facts = make_busy_facts(agents=(make_agent_fact(name=name),))

    assert draw(build(ReportType.MICA, make_frame(), facts)).startswith(b"%PDF-")


def test_pdf_names_agents_by_name_and_id_and_prints_the_commands() -> None:
    text = text_of(build(ReportType.EU_AI_ACT, make_frame(), make_busy_facts()))

    assert f"trade-bot({AGENT_ID})" in text.replace(" ", "")
    assert all(command in text for command in (SIGNATURE, DIGESTS, FINGERPRINT))
    assert "2027-12-02" in text
    assert "2 confirmed, 1 dismissed, 0 without a review" in text


@KINDS
@WORLDS
def test_the_pdf_is_deterministic(kind: ReportType, facts: Facts) -> None:
    document = build(kind, make_frame(), facts)

    one, two = (draw(document) for _ in range(2))

    assert one.startswith(b"%PDF-")
    assert one == two


@KINDS
@WORLDS
def test_document_fits_the_published_schema(kind: ReportType, facts: Facts) -> None:
    Draft202012Validator(SCHEMA).validate(build(kind, make_frame(), facts))


def test_schema_is_strict() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    document = build(ReportType.MICA, make_frame(), make_busy_facts())

    wrong = [document | {"more": 1}, document | {"summary": {}}, document | {"period_end": "yesterday"}]

    assert not any(Draft202012Validator(SCHEMA).is_valid(each) for each in wrong)


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
        **dict.fromkeys(("reference", "environment", "form", "notice", "incident_id"), "x"),
        "drafted_at": f"{NOW:%Y-%m-%dT%H:%M:%SZ}",
        "title": "Serious incident <report>",
        "version": 1,
        "filled": {"from_record": 1, "record_fields": 1, "to_state": 1},
        "sections": [{"title": "The incident", "fields": fields}],
    }
    return PdfReader(io.BytesIO(as_pdf(document, digest="ab" * 32)))


def kids(element: Any) -> list[Any]:
    found = element.get("/K", [])
    found = [kid.get_object() for kid in (found if isinstance(found, list) else [found])]
    return [kid for kid in found if isinstance(kid, dict) and "/S" in kid]


def elements(reader: PdfReader) -> list[Any]:
    """Return all parts, in reading order."""

    def walk(element: Any) -> Iterator[Any]:
        yield element
        for kid in kids(element):
            yield from walk(kid)

    return list(walk({"/S": "/Root", "/K": reader.root_object["/StructTreeRoot"]["/K"].get_object()}))  # type: ignore[index]


@pytest.mark.parametrize("make", [make_report, make_notification])
def test_document_is_tagged_says_its_language_and_numbers_its_pages(make: Any) -> None:
    reader = make()
    root, packet = reader.root_object, reader.xmp_metadata

    assert root["/MarkInfo"]["/Marked"]
    assert root["/Lang"] == "en"
    assert root["/ViewerPreferences"]["/DisplayDocTitle"]
    assert packet.dc_title["x-default"] == reader.metadata.title == reader.outline[0].title
    assert b"<pdfuaid:part>1</pdfuaid:part>" in root["/Metadata"].get_data()
    assert reader.metadata.creation_date == reader.metadata.modification_date == NOW
    assert f"Page 2 of {len(reader.pages)}" in reader.pages[1].extract_text()


@pytest.mark.parametrize("make", [make_report, make_notification])
def test_headings_skip_no_level(make: Any) -> None:
    levels = [int(part["/S"][2]) for part in elements(make()) if part["/S"] in ("/H1", "/H2", "/H3")]

    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_table_over_several_pages_is_one_whose_head_is_read_once() -> None:
    tables = [part for part in elements(make_report()) if part["/S"] == "/Table"]

    head, body = kids(max(tables, key=lambda table: len(kids(kids(table)[1]))))

    (row,) = kids(head)
    assert {(cell["/S"], cell["/A"][0]["/Scope"]) for cell in kids(row)} == {("/TH", "/Column")}
    assert len(kids(body)) == 90


def test_findings_are_lists_and_plots_are_told_in_words() -> None:
    parts = elements(make_report())

    assert {kid["/S"] for part in parts if part["/S"] == "/L" for kid in kids(part)} == {"/LI"}
    figures = [part["/Alt"] for part in parts if part["/S"] == "/Figure"]
    assert ["Stacked columns" in figures[0], "10 riskiest agents" in figures[1]] == [True, True]
