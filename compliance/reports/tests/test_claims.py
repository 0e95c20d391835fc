"""Every claim of both reports against rows counted by plain SQL: one test a control, over four periods."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from compliance.reports.content.builder import assess
from compliance.reports.content.controls import Control, Evidence
from compliance.reports.content.regulations import REGULATIONS
from compliance.reports.content.sources import DEFINITIONS, Rows
from compliance.reports.tests.periods import COUNTS, Period, four_periods
from compliance.reports.vocabulary import ControlState, ReportType

EVIDENCED, PARTIAL = ControlState.EVIDENCED, ControlState.PARTIAL
NONE, OPERATOR = ControlState.NOT_EVIDENCED, ControlState.OPERATOR_INPUT_REQUIRED
# The state over the periods full, empty, partial and dropped.
STATES = {
    "aia-12-2-a": (EVIDENCED, NONE, PARTIAL, PARTIAL),
    "aia-12-2-b": (PARTIAL, NONE, PARTIAL, PARTIAL),  # an event without a review
    "aia-12-2-c": (PARTIAL, NONE, PARTIAL, PARTIAL),  # an idle agent
    "aia-13": (PARTIAL, PARTIAL, PARTIAL, PARTIAL),
    "aia-14": (PARTIAL, NONE, PARTIAL, PARTIAL),
    "aia-19-26-6": (PARTIAL, PARTIAL, PARTIAL, PARTIAL),
    "aia-26-5": (PARTIAL, NONE, PARTIAL, PARTIAL),
    "aia-72": (PARTIAL, NONE, PARTIAL, PARTIAL),
    "aia-73": (OPERATOR, OPERATOR, OPERATOR, OPERATOR),
    "mica-2025-1140-2-a": (PARTIAL, NONE, PARTIAL, PARTIAL),
    "mica-2025-1140-2-b": (PARTIAL, OPERATOR, PARTIAL, PARTIAL),
    "mica-2025-1140-2-c": (PARTIAL, OPERATOR, PARTIAL, PARTIAL),
    "mica-2025-1140-8-10": (PARTIAL, PARTIAL, PARTIAL, PARTIAL),
    "mica-68-9": (PARTIAL, PARTIAL, PARTIAL, PARTIAL),
    "dora-10": (PARTIAL, NONE, PARTIAL, PARTIAL),
    "dora-17": (PARTIAL, NONE, PARTIAL, PARTIAL),
    "policy-certificate-validity": (EVIDENCED, PARTIAL, PARTIAL, EVIDENCED),
    "policy-automatic-stops": (PARTIAL, OPERATOR, PARTIAL, PARTIAL),
}
KINDS = {name: kind for kind in ReportType for name in REGULATIONS[kind].provisions}


@pytest.fixture(scope="module")
def periods(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[dict[str, Period]]:
    """The four periods, made once: a control is a function of what was gathered."""
    with django_db_blocker.unblock(), four_periods(str(tmp_path_factory.mktemp("archive"))) as made:
        yield made


@pytest.mark.parametrize("name", STATES)
def test_control_says_what_the_rows_say(periods: dict[str, Period], name: str) -> None:
    found = [control_of(name, period) for period in periods.values()]

    assert tuple(control.state for control in found) == STATES[name]
    for control, period in zip(found, periods.values(), strict=True):
        for claim in control.evidence:
            assert_true(claim, period)
        for gap in control.gaps:
            assert_counted(gap, period)


def control_of(name: str, period: Period) -> Control:
    (found,) = (each for each in assess(KINDS[name], period.frame, period.facts) if each.id == name)
    return found


def assert_true(claim: Evidence, period: Period) -> None:
    """Compare a claim's count and the number in its text with the rows."""
    if claim.rows not in COUNTS:  # the oldest records and the archives have tests of their own
        assert claim.rows in {Rows.OLDEST, Rows.ARCHIVES}
        return
    assert claim.count == period.counts[claim.rows], claim
    if told := re.match(r"[\d,]+", claim.text):
        trend = {len(period.facts.trend)} if claim.rows == Rows.EVENTS else set()
        assert int(told.group().replace(",", "")) in {claim.count, *trend}, claim
    for number, word in re.findall(r"([\d,]+) (high-risk|confirmed|dismissed)", claim.text):
        assert int(number) == (period.counts[Rows.HIGH_RISK] if word == "high-risk" else 1), claim


def assert_counted(gap: str, period: Period) -> None:
    """Compare the number that a gap begins with with the rows."""
    known = [count for words, count in period.counts.items() if words in gap and words not in DEFINITIONS]
    if told := re.match(r"[\d,]+ ", gap):
        assert [int(told.group())] == known or "only observed" in gap or "partition" in gap, gap


def test_all_controls_and_all_sets_of_rows_are_tried(periods: dict[str, Period]) -> None:
    assert set(STATES) == set(KINDS)
    assert set(DEFINITIONS) == set(Rows)
    full = periods["full"].counts
    assert all(full[rows] for rows in COUNTS if rows in set(Rows))


def test_nothing_is_evidenced_without_rows_or_beyond_the_end(periods: dict[str, Period]) -> None:
    for name in ("empty", "partial"):
        states = {control_of(each, periods[name]).state for each in STATES}
        assert EVIDENCED not in states


def test_certificates_in_force_are_told_from_revoked_ones(periods: dict[str, Period]) -> None:
    facts = periods["full"].facts

    assert (facts.certificate_count, facts.revocation_count, facts.certificates_at_end) == (3, 1, 2)


def test_reviews_and_stops_are_timed(periods: dict[str, Period]) -> None:
    facts = periods["full"].facts

    assert facts.review_delays is not None
    assert facts.review_delays.count == 2
    assert facts.stop_delays is not None
    assert facts.stop_delays.longest.total_seconds() < 60
    assert facts.verdicts == {"confirmed": 1, "dismissed": 1}
    assert facts.verdicts_by_keys == 1


def test_drops_stand_in_the_text_of_each_control_that_counts_events(periods: dict[str, Period]) -> None:
    dropped = [control_of(name, periods["dropped"]) for name in STATES]
    counting = [each for each in dropped if any(claim.rows == Rows.EVENTS for claim in each.evidence)]

    assert len(counting) == 5
    assert all("were dropped and are not counted here" in " ".join(each.gaps) for each in counting)
    assert "dropped" not in " ".join(control_of("aia-12-2-a", periods["full"]).gaps)
