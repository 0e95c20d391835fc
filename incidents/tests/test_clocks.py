"""Clocks run from the moment that counts and never longer than the law lets them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from incidents.duties.clocks import Clock, ClockKind, ClockState, clocks_of, months_later
from incidents.models import Incident

START = datetime(2026, 11, 1, 9, 0, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def clock(kind: ClockKind, **stated: Any) -> Clock:
    (found,) = (one for one in clocks_of(Incident(detected_at=START, **stated)) if one.kind == kind)
    return found


def major(**facts: Any) -> dict[str, Any]:
    return {"dora_class": "major", "classified_at": START + HOUR, **facts}


@pytest.mark.parametrize(
    ("harm", "days"),
    [
        ("undecided", 15),
        ("health", 15),
        ("fundamental_rights", 15),
        ("property_or_environment", 15),
        ("death", 10),
        ("critical_infrastructure", 2),
        ("widespread_infringement", 2),
    ],
)
def test_ai_act_term_depends_on_the_harm(harm: str, days: int) -> None:
    found = clock(ClockKind.AI_ACT_REPORT, serious_harm=harm)

    assert found.due_at == START + days * DAY
    assert "Article 73" in found.provision


def test_ai_act_runs_from_stated_awareness_else_from_detection() -> None:
    stated = clock(ClockKind.AI_ACT_REPORT, aware_at=START + 5 * HOUR)
    recorded = clock(ClockKind.AI_ACT_REPORT)

    assert (stated.started_at, stated.basis) == (START + 5 * HOUR, "awareness, as stated")
    assert (recorded.started_at, recorded.basis) == (START, "detection by the service")


def test_ai_act_does_not_apply_to_what_is_not_serious() -> None:
    found = clock(ClockKind.AI_ACT_REPORT, serious_harm="not_serious")

    assert found.state_at(START) == ClockState.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("classified", "due"),
    [
        (None, START + 24 * HOUR),
        (START + 1 * HOUR, START + 5 * HOUR),
        (START + 20 * HOUR, START + 24 * HOUR),
        (START + 23 * HOUR, START + 24 * HOUR),
        (START + 30 * HOUR, START + 34 * HOUR),
    ],
)
def test_dora_initial_is_due_4_hours_from_classification_and_24_from_awareness(
    classified: datetime | None, due: datetime
) -> None:
    facts = major(classified_at=classified) if classified else {}

    assert clock(ClockKind.DORA_INITIAL, **facts).due_at == due


def test_dora_intermediate_and_final_follow_what_was_sent() -> None:
    sent = START + 3 * HOUR
    waiting = clock(ClockKind.DORA_INTERMEDIATE, **major())
    intermediate = clock(ClockKind.DORA_INTERMEDIATE, **major(dora_initial_at=sent))
    final = clock(ClockKind.DORA_FINAL, **major(dora_initial_at=sent, dora_intermediate_at=START + 2 * DAY))

    assert waiting.state_at(START + DAY) == ClockState.WAITING
    assert intermediate.due_at == sent + 72 * HOUR
    assert final.due_at == datetime(2026, 12, 3, 9, 0, tzinfo=UTC)


def test_later_dora_reports_apply_to_major_incidents_only() -> None:
    for kind in (ClockKind.DORA_INTERMEDIATE, ClockKind.DORA_FINAL):
        assert clock(kind).state_at(START) == ClockState.NOT_APPLICABLE
    assert clock(ClockKind.DORA_INITIAL, dora_class="not_major").state_at(START) == ClockState.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("met", "now", "state"),
    [
        (None, START + 15 * DAY, ClockState.DUE),
        (None, START + 15 * DAY + timedelta(seconds=1), ClockState.MISSED),
        (START + 15 * DAY, START + 20 * DAY, ClockState.MET),
        (START + 16 * DAY, START + 20 * DAY, ClockState.MISSED),
    ],
)
def test_state_of_a_clock(met: datetime | None, now: datetime, state: ClockState) -> None:
    found = clock(ClockKind.AI_ACT_REPORT, serious_harm="health", ai_act_reported_at=met)

    assert found.state_at(now) == state


@pytest.mark.parametrize(
    ("moment", "later"),
    [
        ("2026-01-31T10:00", "2026-02-28T10:00"),
        ("2028-01-31T10:00", "2028-02-29T10:00"),
        ("2026-12-15T23:59", "2027-01-15T23:59"),
        ("2026-11-30T00:00", "2026-12-30T00:00"),
    ],
)
def test_month_ends_on_the_same_day_or_the_last(moment: str, later: str) -> None:
    assert months_later(datetime.fromisoformat(moment), 1) == datetime.fromisoformat(later)
