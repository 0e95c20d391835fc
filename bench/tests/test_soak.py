"""When a soak counts as flat."""

from dataclasses import replace

import pytest

from bench.parts.soak import Course, Window, courses, drift

PACES = (10.0, 12.0, 15.0, 10.0, 11.0, 14.0, 10.0, 13.0, 16.0, 10.0, 12.0, 10.0)


def windows(*p99: float, memory: float = 100.0) -> list[Window]:
    return [Window(1.0, one, 0, {"web loop 1": memory + place}, 10.0) for place, one in enumerate(p99)]


def paced(growth: float, *, wave: float = 1.0) -> list[Window]:
    """p99 goes with the cube of the pace and grows from one third to the next, with a wave on top."""
    return [
        Window(1.0, pace**3 * growth ** (place / 4) * wave ** (-1) ** place, 0, {}, pace)
        for place, pace in enumerate(PACES)
    ]


def test_second_third_is_compared_with_the_last() -> None:
    found = courses(windows(90, 80, 10, 12, 13, 15))

    assert [(one.name, one.early, one.late) for one in found] == [
        ("p99", 11.0, 14.0),
        ("pace", 10.0, 10.0),
        ("web loop 1", 102.5, 104.5),
    ]


@pytest.mark.parametrize(("growth", "is_flat"), [(1.0, True), (1.04, True), (0.94, False), (1.06, False)])
def test_pace_of_the_machine_is_no_drift(growth: float, is_flat: bool) -> None:
    found = drift(paced(growth))

    assert found.moved == pytest.approx(growth - 1)
    assert found.error == pytest.approx(0.0, abs=1e-6)
    assert found.is_flat is is_flat


def test_drift_says_how_sure_it_is() -> None:
    uneven, even = drift(paced(1.2, wave=1.2)), drift(paced(1.2, wave=1.02))

    assert uneven.error > 5 * even.error > 0.0
    assert abs(uneven.moved - 0.2) < 2 * uneven.error


def test_window_that_the_hypervisor_disturbed_is_left_out() -> None:
    *others, last = paced(1.0)

    assert drift([*others, replace(last, p99=1e6, stolen=0.01)]).moved == pytest.approx(0.0)
    assert drift([*others, replace(last, p99=1e6)]).moved > 0.5


def test_machine_that_only_slows_down_leaves_no_verdict() -> None:
    slower = [Window(1.0, 2.0**place, 0, {}, 2.0**place) for place in range(12)]

    assert not drift(slower).is_flat


@pytest.mark.parametrize(
    ("late", "is_flat"), [(100.0, True), (105.0, True), (95.0, True), (105.5, False), (94.0, False)]
)
def test_a_twentieth_more_or_less_is_flat(late: float, is_flat: bool) -> None:
    assert Course("p99", 100.0, late).is_flat is is_flat


def test_verdict_stands_beside_both_figures() -> None:
    assert Course("views 1", 100.0, 110.0).cells("MB") == [
        "views 1",
        "100",
        "110",
        "MB",
        "+10.0%",
        "NOT FLAT",
    ]


def test_process_that_ended_is_not_flat() -> None:
    kept, ended = windows(1, 1, 1), Window(1.0, 1.0, 0, {}, 10.0)

    found = {one.name: one for one in courses([*kept, ended])}

    assert not found["web loop 1"].is_flat
