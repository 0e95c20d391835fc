"""The document, its digest, and the PDF made from it."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from compliance.reports.content import builder
from compliance.reports.content.facts import Facts
from compliance.reports.tests.factories import END, NOW, draw, make_agent_fact, make_busy_facts, make_frame
from compliance.reports.vocabulary import ReportType

KINDS = list(ReportType)


@pytest.mark.parametrize("kind", KINDS)
def test_same_facts_same_document(kind: ReportType) -> None:
    one, two = (builder.build(kind, make_frame(), make_busy_facts()) for _ in range(2))

    assert builder.canonical(one) == builder.canonical(two)
    assert builder.digest(one) == hashlib.sha256(rfc8785.dumps(two)).hexdigest()


def test_any_change_changes_the_digest() -> None:
    frame, facts = make_frame(), make_busy_facts()
    before = builder.digest(builder.build(ReportType.MICA, frame, facts))

    after = builder.digest(builder.build(ReportType.MICA, frame, replace(facts, revocation_count=2)))

    assert before != after


def test_the_document_survives_json() -> None:
    document = builder.build(ReportType.EU_AI_ACT, make_frame(), make_busy_facts())

    assert builder.digest(json.loads(json.dumps(document))) == builder.digest(document)


def test_dates_of_the_regulation_are_data() -> None:
    document = builder.build(ReportType.EU_AI_ACT, make_frame(), Facts())

    deferred = [item for item in document["regulation"]["applications"] if "Annex III" in item["scope"]]
    assert [(item["applies_from"], "reg/2026/1744" in item["source"]) for item in deferred] == [
        ("2027-12-02", True)
    ]


def test_a_period_that_has_not_ended_is_covered_until_now() -> None:
    document = builder.build(ReportType.MICA, make_frame(end=NOW + timedelta(days=1)), Facts())

    assert document["covered_until"] == document["generated_at"] == "2026-11-20T09:00:00Z"
    assert make_frame().covered_until == END


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("facts", [Facts(), make_busy_facts()], ids=["empty", "busy"])
def test_the_pdf_is_deterministic(kind: ReportType, facts: Facts) -> None:
    document = builder.build(kind, make_frame(), facts)

    one, two = (draw(document) for _ in range(2))

    assert one.startswith(b"%PDF-")
    assert one == two


HOSTILE = [
    "<b>bold</b><para>",
    "</para><img src='file:///etc/passwd'/>",
    "&amp; &lt; &#0; &nosuch;",
    "x" * 255,
    "山田太郎 Жуков 👩‍🚀",
    "a\u202eb\nc\td",
    "%s {0} ${x}",
    "<",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_shown_and_not_obeyed(name: str) -> None:
    facts = make_busy_facts(agents=(make_agent_fact(name=name, model=name, version=name),))
    document = builder.build(ReportType.MICA, make_frame(tenant_name=name), facts)

    assert draw(document).startswith(b"%PDF-")
    assert document["tenant"]["name"] == name


@settings(max_examples=15)
@given(name=st.text(max_size=255))
def test_no_name_breaks_the_pdf(name: str) -> None:
    facts = make_busy_facts(agents=(make_agent_fact(name=name),))

    assert draw(builder.build(ReportType.MICA, make_frame(), facts)).startswith(b"%PDF-")


def test_a_long_report_has_many_numbered_pages() -> None:
    facts = make_busy_facts(agents=tuple(make_agent_fact(name=f"bot {number}") for number in range(500)))

    rendered = draw(builder.build(ReportType.MICA, make_frame(), facts))

    assert rendered.count(b"/Type /Page\n") > 5
