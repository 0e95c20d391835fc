"""Controls as functions of facts: what is evidence, what is a gap, and that nothing is ever "compliant"."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from auditlog.verifying.chosen_entries import ComparedEntries
from compliance.core.wording import counted, spoken
from reports.content import eu_ai_act, mica
from reports.content.builder import assess, build
from reports.content.controls import Control, Evidence
from reports.content.facts import Facts, Row, Spread
from reports.content.regulations import LAW, REGULATIONS
from reports.content.sources import Rows
from reports.tests.factories import NOW, draw, make_agent_fact, make_busy_facts, make_frame
from reports.vocabulary import ControlState, ReportType

IDLE = make_agent_fact(events_by_band={})
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


def states(kind: ReportType, facts: Facts) -> dict[str, ControlState]:
    return {control.id: control.state for control in assess(kind, make_frame(), facts)}


def found_by(control: Any, **facts: Any) -> Control:
    """What a control finds of a busy month with these facts."""
    found = Control("x", make_frame(), make_busy_facts(**facts))
    control(found)
    return found


def test_a_busy_month_under_the_ai_act() -> None:
    assert states(ReportType.EU_AI_ACT, make_busy_facts()) == {
        "aia-12-2-a": EVIDENCED,
        "aia-12-2-b": EVIDENCED,
        "aia-12-2-c": EVIDENCED,
        "aia-13": PARTIAL,
        "aia-14": PARTIAL,
        "aia-19-26-6": PARTIAL,
        "aia-26-5": PARTIAL,
        "aia-72": PARTIAL,
        "aia-73": OPERATOR,
    }


def test_a_busy_month_under_mica() -> None:
    assert states(ReportType.MICA, make_busy_facts()) == {
        "mica-2025-1140-2-a": PARTIAL,
        "mica-2025-1140-2-b": PARTIAL,
        "mica-2025-1140-2-c": OPERATOR,
        "mica-2025-1140-2-d": OPERATOR,
        "mica-2025-1140-2-e": OPERATOR,
        "mica-2025-1140-8-10": PARTIAL,
        "mica-68-9": PARTIAL,
        "dora-10": PARTIAL,
        "dora-17": PARTIAL,
        "policy-certificate-validity": EVIDENCED,
        "policy-automatic-stops": EVIDENCED,
    }


def test_an_empty_tenant_evidences_nothing() -> None:
    found = states(ReportType.EU_AI_ACT, Facts()) | states(ReportType.MICA, Facts())

    operators = ("aia-73", "mica-2025-1140-2-b", "mica-2025-1140-2-d", "mica-2025-1140-2-e")
    asserted = {found.pop(name) for name in operators}
    assert (asserted, set(found.values())) == ({OPERATOR}, {NOT_EVIDENCED})


@pytest.mark.parametrize(
    ("control", "facts", "state", "gap"),
    [
        (eu_ai_act.identity_and_limits, {"agents_without_scope": 1}, PARTIAL, "permitted actions"),
        (eu_ai_act.identity_and_limits, {"agents_without_model_or_version": 2}, PARTIAL, "2 agents without"),
        (eu_ai_act.identity_and_limits, {"uncertified_active_agents": 1}, PARTIAL, "without an active cert"),
        (
            eu_ai_act.logging_of_operation,
            {"silent_agents": 1},
            PARTIAL,
            "without an event",
        ),
        (eu_ai_act.oversight, {"human_interventions": 0}, PARTIAL, "No act of a person"),
        (mica.inalterability, {"is_log_guarded": False}, NOT_EVIDENCED, "missing or disabled"),
        (mica.inalterability, {**SEALED, "witnessed_size": 0}, PARTIAL, "No witness has cosigned"),
        (mica.inalterability, {**SEALED, "comparison": ComparedEntries(2)}, PARTIAL, "1 audit entry not yet"),
        (mica.inalterability, {**SEALED, "whole_log": ""}, PARTIAL, "No verification of the whole log"),
        *(
            (mica.inalterability, {**SEALED, **damage}, NOT_EVIDENCED, "the audit log was tampered with")
            for damage in (
                {"comparison": ComparedEntries(2, changed=1)},
                {"comparison": ComparedEntries(3, is_rooted=False)},
                {"places_without_entry": 1},
            )
        ),
        (mica.attribution, {"delegations": {"verified": 3, "nobody": 1}}, PARTIAL, "1 delegation naming"),
        (mica.attribution, {"events_by_action": {}}, NOT_EVIDENCED, "there is nothing to attribute"),
        (mica.reconstitution, {}, PARTIAL, "competent authorities can access the records readily"),
        (
            mica.reconstitution,
            {"erased_parts": 6, "erased_entries": 3},
            PARTIAL,
            "6 parts of 3 audit entries",
        ),
        (mica.attribution, {"delegations_checked_against_a_scope": 2}, PARTIAL, "declare no scope"),
        (mica.attribution, NO_DELEGATION, PARTIAL, "for whom"),
        (mica.reconstitution, {"unlinked_transactions": 5}, PARTIAL, "5 transaction events named no chain"),
        (mica.validity, {"overlong_certificates": 1}, NOT_EVIDENCED, "valid for longer"),
    ],
)
def test_each_lack_is_a_gap(control: Any, facts: dict[str, Any], state: ControlState, gap: str) -> None:
    found = found_by(control, **facts)

    assert found.state == state
    assert any(gap in text for text in found.gaps)


def test_sealed_and_witnessed_entries_are_evidence() -> None:
    found = found_by(mica.inalterability, **SEALED)

    (claim,) = found.evidence
    assert claim.text.startswith("3 of 3 audit entries hashed anew")
    assert "the signed checkpoint of 40 entries" in claim.text
    assert "cosigned the tree up to 38 entries" in " ".join(found.asserted)


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
@pytest.mark.parametrize(
    ("facts", "evidence", "gap"),
    [
        ({}, "Events are kept for 1,827 days by the present settings", ""),
        ({}, "The oldest event stored is 400 days old", ""),
        ({}, "The oldest audit entry stored is 401 days old", ""),
        ({"event_retention_days": 182}, "Events are kept for 182 days", "Events are kept for less than"),
        ({"audit_retention_days": 9}, "Audit entries are kept for 9 days", "Audit entries are kept for less"),
        ({}, "", "Since when the retention of events is set so is not recorded yet"),
        ({"archives": (make_span(500),)}, "1 partition of events archived", "is for the operator to show"),
        ({"archives": (make_span(9, archive_sha256=None),)}, "", "1 partition of events dropped without an"),
        ({"covered_from": NOW}, "", "Events received before 2026-11-20 were dropped"),
    ],
)
def test_retention_states_settings_and_what_was_dropped(
    retention: Any, facts: dict[str, Any], evidence: str, gap: str
) -> None:
    found = found_by(retention, **facts)

    said = [*(claim.text for claim in found.evidence), *found.asserted]
    assert any(text.startswith(evidence) for text in said)
    assert gap in " ".join(found.gaps)


@pytest.mark.parametrize("retention", RETENTIONS)
def test_restored_archive_is_no_gap(retention: Any) -> None:
    stored = make_span(500, is_stored=True)

    assert found_by(retention, archives=(stored,)).gaps == found_by(retention).gaps


@pytest.mark.parametrize("kind", ReportType)
def test_no_event_is_said_not_to_exist_that_was_dropped(kind: ReportType) -> None:
    dropped = {"covered_from": NOW, "events_by_band": {}, "events_by_action": {}, "trend": ()}
    documents = [str(build(kind, make_frame(), make_busy_facts(**facts))) for facts in (dropped, {})]

    assert "No event was received" not in documents[0]
    assert "were dropped and are not counted here" in documents[0]
    assert "were dropped" not in documents[1]


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


def test_delays_of_people_and_of_the_service_are_told() -> None:
    found = found_by(
        eu_ai_act.oversight,
        verdicts={"confirmed": 1, "dismissed": 1},
        review_delays=Spread(2, timedelta(minutes=5), timedelta(hours=3)),
        stop_delays=Spread(1, timedelta(seconds=0.2), timedelta(seconds=0.2)),
        acts={"agent.high_risk": {"system": 1}},
    )

    said = " ".join(claim.text for claim in found.evidence)

    assert "2 of 3 high-risk events reviewed: 1 confirmed as part of an attack, 1 dismissed" in said
    assert "from event to first review: median 5 minutes, longest 3 hours" in said
    assert (
        "1 automatic stop made by the service; from the receipt of the last strike to the stop: median 0.2"
        in said
    )
    assert "1 high-risk event without a review" in found.gaps


def test_stop_with_the_time_of_its_strike_is_not_told_as_measured() -> None:
    found = found_by(eu_ai_act.oversight, stop_delays=Spread(1, timedelta(), timedelta()))

    assert "both are one reading of the clock" in str(found.evidence)


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


@pytest.mark.parametrize("kind", ReportType)
def test_law_comes_from_the_official_journal(kind: ReportType) -> None:
    regulation = REGULATIONS[kind]

    assert all(date["source"].startswith("http://data.europa.eu/eli/") for date in regulation.applications)
    assert all(
        date["applies_from"] == str(datetime.fromisoformat(date["applies_from"]).date())
        for date in regulation.applications
    )
    assert all(
        each["applications"] or "Policy" in each["reference"] for each in regulation.provisions.values()
    )
    assert "secondary" not in LAW.read_text()


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
