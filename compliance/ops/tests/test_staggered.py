"""When tasks by the clock are due: each at its own times, never all together."""

from collections import defaultdict
from copy import copy
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st

from compliance import celery
from compliance.ops.scheduling.staggered import Staggered, staggered

START = datetime(2026, 1, 1, tzinfo=UTC)
A_MINUTE = Staggered(60.0, 15.0)

quarters = st.integers(0, 40_000).map(lambda number: number / 4)
"""Seconds that a float holds exactly."""


def at(offset: float) -> datetime:
    return START + timedelta(seconds=offset)


def test_tasks_of_one_period_are_spread_evenly_over_it() -> None:
    found = staggered({"a": 60.0, "b": 60.0, "c": 60.0, "d": 3600.0})

    assert [found[name].offset for name in "abcd"] == [10.0, 30.0, 50.0, 1800.0]


def test_no_two_tasks_of_one_period_are_due_at_one_time() -> None:
    offsets = defaultdict(list)
    for entry in celery.schedule().values():
        offsets[entry["schedule"].seconds].append(entry["schedule"].offset)

    for period, alike in offsets.items():
        ordered = sorted(alike)
        gaps = [later - earlier for earlier, later in pairwise([*ordered, ordered[0] + period])]
        assert gaps == pytest.approx([period / len(alike)] * len(alike))


def test_copies_are_due_at_the_same_times() -> None:
    assert copy(A_MINUTE) == A_MINUTE
    assert Staggered(60.0, 30.0) != A_MINUTE


def test_a_run_that_was_late_does_not_move_the_next() -> None:
    with time_machine.travel(at(16.0), tick=False):
        late = A_MINUTE.is_due(at(-45.0))
    with time_machine.travel(at(20.0), tick=False):
        again = A_MINUTE.is_due(at(16.0))

    assert late == pytest.approx((True, 59.0))
    assert again == pytest.approx((False, 55.0))


def test_runs_that_were_missed_are_made_up_by_one() -> None:
    with time_machine.travel(at(600.0), tick=False):
        missed = A_MINUTE.is_due(at(0.0))
        again = A_MINUTE.is_due(at(600.0))

    assert missed == pytest.approx((True, 15.0))
    assert again == pytest.approx((False, 15.0))


@given(
    last=quarters,
    waited=quarters,
    period=st.sampled_from([1.0, 5.0, 60.0, 3600.0]),
    share=st.sampled_from([0.0, 0.25, 0.75]),
)
def test_due_once_after_each_of_its_times(last: float, waited: float, period: float, share: float) -> None:
    times = Staggered(period, share * period)
    with time_machine.travel(at(last + waited), tick=False):
        due, pause = times.is_due(at(last))

    runs = (times.offset + number * period for number in range(-1, int((last + waited) / period) + 1))
    assert due == any(last < run <= last + waited for run in runs)
    assert 0 < pause <= period
    assert (last + waited + pause - times.offset) % period == 0
