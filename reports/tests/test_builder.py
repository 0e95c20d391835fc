"""The document and its digest."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta

import pytest
import rfc8785

from reports.content import builder
from reports.content.facts import Facts
from reports.tests.factories import END, NOW, make_busy_facts, make_frame
from reports.vocabulary import ReportType

KINDS = list(ReportType)


@pytest.mark.parametrize("kind", KINDS)
def test_same_facts_same_document(kind: ReportType) -> None:
    one, two = (builder.build(kind, make_frame(), make_busy_facts()) for _ in range(2))

    assert builder.canonical(one) == builder.canonical(two)
    assert builder.digest(one) == hashlib.sha256(rfc8785.dumps(two)).hexdigest()


def test_any_change_changes_the_digest() -> None:
    frame, facts = make_frame(), make_busy_facts()
    before = builder.digest(builder.build(ReportType.MICA, frame, facts))

    after = builder.digest(builder.build(ReportType.MICA, frame, replace(facts, certificate_count=2)))

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
