"""The PDF as readers see it: its text in every European script, its parts, and the published schema."""

import io
from typing import Any

import jsonschema_rs
import pytest
from jsonschema_rs import Draft202012Validator
from pypdf import PdfReader

from compliance.reports.content.builder import SCHEMA, build
from compliance.reports.content.facts import Facts
from compliance.reports.pdf.checking import DIGESTS, FINGERPRINT, SIGNATURE
from compliance.reports.tests.factories import AGENT_ID, draw, make_agent_fact, make_busy_facts, make_frame
from compliance.reports.vocabulary import ReportType


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


def test_fonts_are_embedded() -> None:
    drawn = draw(build(ReportType.MICA, make_frame(), make_busy_facts()))
    page: Any = PdfReader(io.BytesIO(drawn)).pages[0]
    fonts = [font.get_object() for font in page["/Resources"]["/Font"].values()]
    noto = [font for font in fonts if "NotoSans" in font["/BaseFont"]]

    assert noto
    assert all("/FontFile2" in font["/FontDescriptor"] for font in noto)


def test_pdf_names_agents_by_name_and_id_and_prints_the_commands() -> None:
    text = text_of(build(ReportType.EU_AI_ACT, make_frame(), make_busy_facts()))

    assert f"trade-bot({AGENT_ID})" in text.replace(" ", "")
    assert all(command in text for command in (SIGNATURE, DIGESTS, FINGERPRINT))
    assert "2027-12-02" in text
    assert "2 confirmed, 1 dismissed, 0 without a review" in text


@pytest.mark.parametrize("kind", ReportType)
@pytest.mark.parametrize("facts", [Facts(), make_busy_facts()], ids=["empty", "busy"])
def test_document_fits_the_published_schema(kind: ReportType, facts: Facts) -> None:
    Draft202012Validator(SCHEMA).validate(build(kind, make_frame(), facts))


def test_schema_is_strict() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    document = build(ReportType.MICA, make_frame(), make_busy_facts())

    wrong = [document | {"more": 1}, document | {"summary": {}}, document | {"period_end": "yesterday"}]

    assert not any(Draft202012Validator(SCHEMA).is_valid(each) for each in wrong)
