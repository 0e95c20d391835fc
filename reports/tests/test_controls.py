"""Controls as functions of facts: what is evidence, what is a gap, and that nothing is ever "compliant"."""

from datetime import timedelta
from typing import Any

import pytest

from auditlog.verifying.chosen_entries import ComparedEntries
from compliance.core.wording import counted, spoken
from reports.content import eu_ai_act, mica
from reports.content.builder import build
from reports.content.controls import Control, Evidence
from reports.content.facts import Facts, Row
from reports.content.regulations import REGULATIONS
from reports.content.sources import Rows
from reports.tests.factories import NOW, draw, make_busy_facts, make_frame
from reports.vocabulary import ControlState, ReportType

NO_DELEGATION = {
    "delegations": {},
    "delegations_checked_against_a_scope": 0,
}
SEALED = {
    "acts": {"agent.created": {"system": 3}},
    "checkpoint_size": 40,
    "checkpoint_root": "c2hh",
    "comparison": ComparedEntries(as_sealed=3),
    "witnessed_size": 38,
    "whole_log": "audit_verify found it whole",
}
RETENTIONS = [eu_ai_act.CONTROLS["aia-19-26-6"], mica.retention]
EVIDENCED, PARTIAL = ControlState.EVIDENCED, ControlState.PARTIAL
NOT_EVIDENCED, OPERATOR = ControlState.NOT_EVIDENCED, ControlState.OPERATOR_INPUT_REQUIRED


def found_by(control: Any, **facts: Any) -> Control:
    """What a control finds of a busy month with these facts."""
    found = Control("x", make_frame(), make_busy_facts(**facts))
    control(found)
    return found


@pytest.mark.parametrize(
    ("control", "facts", "state", "gap"),
    [
        (eu_ai_act.identity_and_limits, {"agents_without_model_or_version": 2}, PARTIAL, "2 agents without"),
        (eu_ai_act.oversight, {"human_interventions": 0}, PARTIAL, "No act of a person"),
        (mica.inalterability, {**SEALED, "whole_log": ""}, PARTIAL, "No verification of the whole log"),
        (mica.reconstitution, {}, PARTIAL, "competent authorities can access the records readily"),
        (
            mica.reconstitution,
            {"erased_parts": 6, "erased_entries": 3},
            PARTIAL,
            "6 parts of 3 audit entries",
        ),
        (mica.attribution, NO_DELEGATION, PARTIAL, "for whom"),
        (mica.validity, {"overlong_certificates": 1}, NOT_EVIDENCED, "valid for longer"),
    ],
)
def test_each_lack_is_a_gap(control: Any, facts: dict[str, Any], state: ControlState, gap: str) -> None:
    found = found_by(control, **facts)

    assert found.state == state
    assert any(gap in text for text in found.gaps)


@pytest.mark.parametrize(("days", "is_short"), [(182, True), (183, False), (400, False)])
def test_logs_reach_back_six_months_or_do_not(days: int, is_short: bool) -> None:
    oldest = NOW - timedelta(days=days)

    found = found_by(RETENTIONS[0], oldest_event_at=oldest, oldest_entry_at=None)

    assert found.state == PARTIAL
    assert ("The records stored do not reach back six months" in found.gaps) is is_short


def make_span(days: int, **fields: Any) -> Row:
    """A month of receipt that ended so many days ago, archived and dropped."""
    end = NOW - timedelta(days=days)
    given = {"received_from": end - timedelta(days=30), "received_before": end, "is_stored": False}
    return {**given, "archived_at": NOW, "dropped_at": NOW, "archive_sha256": "ab" * 32, **fields}


@pytest.mark.parametrize("retention", RETENTIONS)
def test_what_was_dropped_without_an_archive_is_a_gap(retention: Any) -> None:
    found = found_by(retention, archives=(make_span(9, archive_sha256=None),))

    assert "1 partition of events dropped without an" in " ".join(found.gaps)


@pytest.mark.parametrize("retention", RETENTIONS)
def test_restored_archive_is_no_gap(retention: Any) -> None:
    stored = make_span(500, is_stored=True)

    assert found_by(retention, archives=(stored,)).gaps == found_by(retention).gaps


@pytest.mark.parametrize("kind", ReportType)
def test_document_states_what_is_covered_kept_and_archived(kind: ReportType) -> None:
    span = make_span(500)

    document = build(kind, make_frame(), make_busy_facts(archives=(span,), covered_from=NOW))

    assert document["covered_from"] == "2026-11-20T09:00:00Z"
    assert build(kind, make_frame(), Facts())["covered_from"] == document["period_start"]
    kept = document["retention"]
    assert (kept["event_retention_days"], kept["audit_retention_days"]) == (1827, 1827)
    assert kept["archives"][0]["archive_sha256"] == "ab" * 32
    assert draw(document).startswith(b"%PDF-")


@pytest.mark.parametrize("kind", ReportType)
def test_dropped_audit_entries_stand_in_the_text(kind: ReportType) -> None:
    document = build(kind, make_frame(), make_busy_facts(entries_from=NOW))

    assert "Audit entries made before 2026-11-20 were dropped and are not counted here" in str(document)
    assert document["retention"]["audit_entries_from"] == "2026-11-20T09:00:00Z"


@pytest.mark.parametrize("kind", ReportType)
@pytest.mark.parametrize("facts", [Facts(), make_busy_facts()])
def test_every_provision_has_its_control_and_no_verdict_is_given(kind: ReportType, facts: Facts) -> None:
    document = build(kind, make_frame(), facts)

    assert [control["id"] for control in document["controls"]] == list(REGULATIONS[kind].provisions)
    assert all(control["state"] in ControlState.values for control in document["controls"])
    assert all(
        control["evidence"] or control["gaps"] or control["asserted"] for control in document["controls"]
    )
    assert "compliant" not in str(document).lower()


EVIDENCE = Evidence("e", Rows.EVENTS, 1)


@pytest.mark.parametrize(
    ("evidence", "gaps", "asserted", "state"),
    [
        (1, 0, 0, EVIDENCED),
        (1, 1, 0, PARTIAL),
        (1, 0, 1, PARTIAL),
        (0, 1, 0, NOT_EVIDENCED),
        (0, 0, 0, NOT_EVIDENCED),
        (0, 0, 1, OPERATOR),
        (0, 1, 1, OPERATOR),
    ],
)
def test_only_rows_are_evidence(evidence: int, gaps: int, asserted: int, state: ControlState) -> None:
    found = Control("x", make_frame(), Facts(), [EVIDENCE] * evidence, ["g"] * gaps, ["a"] * asserted)

    assert found.state == state


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 seconds"),
        (0.25, "0.2 seconds"),
        (59, "59 seconds"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7_200, "2 hours"),
        (86_400 * 40, "40 days"),
    ],
)
def test_spans_are_spoken(seconds: float, text: str) -> None:
    assert spoken(timedelta(seconds=seconds)) == text


def test_numbers_are_counted() -> None:
    assert (counted(1, "agent"), counted(0, "agent")) == ("1 agent", "0 agents")
    assert counted(12_000, "entry", "entries") == "12,000 entries"
