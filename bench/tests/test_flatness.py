"""When a soak counts as flat."""

from dataclasses import replace
from math import isnan, nan
from typing import Any

import pytest

from bench.ingest.flatness import Course, Drift, Verdict, Window, courses, drift, memories

PACES = (10.0, 12.0, 15.0, 10.0, 11.0, 14.0, 10.0, 13.0, 16.0, 10.0, 12.0, 10.0)


def windows(*p99: float, memory: float = 100.0) -> list[Window]:
    return [Window(1.0, one, 0, {"web loop 1": memory + place}, 10.0) for place, one in enumerate(p99)]


def paced(growth: float) -> list[Window]:
    """p99 goes with the cube of the pace, and grows from one third to the next."""
    return [
        Window(1.0, pace**3 * growth ** (place / 4), 0, {}, pace, cost=pace * 20)
        for place, pace in enumerate(PACES)
    ]


def test_second_third_is_compared_with_the_last() -> None:
    found = windows(90, 80, 10, 12, 13, 15)

    assert [(one.name, one.early, one.late) for one in (*courses(found), *memories(found))] == [
        ("p99", 11.0, 14.0),
        ("pace", 10.0, 10.0),
        ("service", 0.0, 0.0),
        ("web loop 1", 102.5, 104.5),
    ]


@pytest.mark.parametrize(
    ("growth", "verdict"),
    [(1.0, Verdict.FLAT), (1.04, Verdict.FLAT), (0.94, Verdict.NOT_FLAT), (1.06, Verdict.NOT_FLAT)],
)
def test_pace_of_the_machine_is_no_drift(growth: float, verdict: Verdict) -> None:
    found = drift(paced(growth))

    assert found.moved == pytest.approx(growth - 1)
    assert found.error == pytest.approx(0.0, abs=1e-6)
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("moved", "error", "verdict"),
    [
        (0.0, 0.02, Verdict.FLAT),
        (0.04, 0.02, Verdict.UNDECIDED),
        (-0.08, 0.02, Verdict.UNDECIDED),
        (-0.10, 0.02, Verdict.NOT_FLAT),
        (0.10, 0.02, Verdict.NOT_FLAT),
        (nan, nan, Verdict.UNDECIDED),
    ],
)
def test_what_the_error_could_explain_is_undecided(moved: float, error: float, verdict: Verdict) -> None:
    assert Drift(moved, error, (10, 10)).verdict is verdict


@pytest.mark.parametrize(
    "spoiled", [{"p99": 1e6, "stolen": 0.01}, {"p99": nan}, {"p99": 0.0}, {"pace": 0.0}], ids=str
)
def test_window_that_tells_nothing_is_left_out(spoiled: dict[str, Any]) -> None:
    *others, last = paced(1.0)

    found = drift([*others, replace(last, **spoiled)])

    assert found.moved == pytest.approx(0.0)
    assert found.used == (4, 3)


def test_first_third_is_left_out() -> None:
    assert drift([replace(one, p99=1e6) for one in paced(1.0)[:4]] + paced(1.0)[4:]).moved == pytest.approx(0)


@pytest.mark.parametrize("third", [1, 2])
def test_third_that_was_disturbed_for_more_than_half_leaves_it_open(third: int) -> None:
    found = paced(1.0)
    for place in range(third * 4, third * 4 + 3):
        found[place] = replace(found[place], stolen=0.01)

    assert isnan(drift(found).moved)
    assert drift(found).verdict is Verdict.UNDECIDED


def test_machine_that_only_slows_down_leaves_it_open() -> None:
    slower = [Window(1.0, 2.0**place, 0, {}, 2.0**place) for place in range(12)]

    assert drift(slower).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("late", "verdict"),
    [
        (100.0, Verdict.FLAT),
        (105.0, Verdict.FLAT),
        (95.0, Verdict.FLAT),
        (105.5, Verdict.NOT_FLAT),
        (94.0, Verdict.NOT_FLAT),
    ],
)
def test_a_twentieth_more_or_less_of_memory_is_flat(late: float, verdict: Verdict) -> None:
    assert Course("views 1", "MB", 100.0, late).verdict is verdict


def test_process_that_ended_is_not_flat() -> None:
    *kept, last = windows(1, 1, 1, 1, 1, 1)

    (found,) = memories([*kept[:4], *(replace(last, memory={}) for _ in range(2))])

    assert found.verdict is Verdict.NOT_FLAT
