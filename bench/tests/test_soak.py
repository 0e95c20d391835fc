"""When a soak counts as flat."""

import pytest

from bench.parts.soak import Course, Window, courses, speeds


def windows(*p99: float, memory: float = 100.0) -> list[Window]:
    return [Window(1.0, one, 0, {"web loop 1": memory + place}) for place, one in enumerate(p99)]


def test_second_quarter_is_compared_with_the_last() -> None:
    found = courses(windows(90, 80, 10, 12, 50, 60, 13, 15))

    assert [(one.name, one.early, one.late) for one in found] == [
        ("p99", 11.0, 14.0),
        ("web loop 1", 102.5, 106.5),
    ]


def test_speed_of_the_machine_stands_apart() -> None:
    slower = [Window(1.0, 1.0, 0, {}, speed) for speed in (9.0, 20.0, 9.0, 15.0)]

    assert speeds(slower) == Course("machine", 20.0, 15.0)
    assert [one.name for one in courses(slower)] == ["p99"]


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


def test_few_windows_have_a_verdict_too() -> None:
    assert [one.is_flat for one in courses(windows(10, 10))] == [True, True]


def test_process_that_ended_is_not_flat() -> None:
    kept, ended = windows(1, 1, 1), Window(1.0, 1.0, 0, {})

    found = {one.name: one for one in courses([*kept, ended])}

    assert not found["web loop 1"].is_flat
