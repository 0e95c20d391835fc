"""The benchmark's pure parts: figures, answers, requests, the table."""

import json
from math import isnan
from random import Random

import pytest

from bench.harness import answers
from bench.harness.ledger import floor_id
from bench.harness.report import Row
from bench.harness.stats import longest_gap, median, percentile
from bench.harness.traffic import MIX, Habits, Traffic
from events.models import ActionType

ID = "01a1fad5-2662-7348-86ea-8ffb2ba48a5c"


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100), (0.0, 1)])
def test_percentile_is_a_measured_value(share: float, value: float) -> None:
    assert percentile(range(1, 101), share) == value


def test_nothing_measured_has_no_percentile_and_no_median() -> None:
    assert isnan(percentile([], 0.5))
    assert isnan(median([]))


@pytest.mark.parametrize("name", [b"content-length", b"Content-Length"])
def test_answer_is_whole_with_its_last_byte(name: bytes) -> None:
    data = b"HTTP/1.1 201 Created\r\n" + name + b": 4\r\nx: y\r\n\r\nabcd"

    assert answers.whole(data)
    assert not any(answers.whole(data[:end]) for end in range(len(data)))
    assert answers.status(data) == b"201"


def test_answer_without_a_length_is_unreadable() -> None:
    with pytest.raises(answers.Unreadable):
        answers.whole(b"HTTP/1.1 200 OK\r\n\r\n")


@pytest.mark.parametrize("blank", ["", " "])
def test_ids_of_events_are_found_and_no_others(blank: str) -> None:
    one = f'{{"agent_id":{blank}"{ID[::-1]}","id":{blank}"{ID}"}}'.encode()

    assert answers.first_id(one) == ID.encode()
    assert answers.all_ids(one + one) == [ID.encode()] * 2
    assert answers.first_id(b"{}") is None


def test_requests_are_events_that_the_service_takes() -> None:
    source = Traffic([ID]).single(key="secret")

    for request in (source() for _ in range(50)):
        head, _, body = request.partition(b"\r\n\r\n")
        event = json.loads(body)
        assert b"Authorization: Bearer secret\r\n" in head
        assert f"Content-Length: {len(body)}".encode() in head
        assert event["agent_id"] == ID
        assert event["action_type"] in ActionType.values
        assert isinstance(event["details"], dict)


def test_every_event_has_a_session_of_its_own() -> None:
    traffic = Traffic([ID])
    single, batch = traffic.single(), traffic.batch(3)

    bodies = [json.loads(source().partition(b"\r\n\r\n")[2]) for source in (single, batch, single, batch)]
    events = [event for body in bodies for event in body.get("events", [body])]

    assert len({event["session_id"] for event in events}) == len(events) == 8
    assert all(event["session_id"].startswith(traffic.mark) for event in events)


def test_an_agent_has_the_same_habits_in_each_run() -> None:
    assert Habits.of(ID) == Habits.of(ID)
    assert {kind for kind, _ in MIX} <= set(ActionType.values)
    assert Habits.of(ID).event(Random(1)) == Habits.of(ID).event(Random(1))


def test_floor_id_is_below_the_ids_of_its_moment() -> None:
    moment = int(ID.replace("-", "")[:12], 16) / 1000

    assert floor_id(moment) < ID < floor_id(moment + 0.001)


def test_longest_gap_counts_the_ends() -> None:
    assert longest_gap([1.0, 2.0, 5.0, 6.0], after=1.5, until=7.0) == 3.0
    assert longest_gap([], after=1.0, until=4.0) == 3.0


def test_ratios_above_one_are_better_for_rates_and_latencies() -> None:
    assert Row("rate", "1/s", 200.0, 100.0).ratio() == 2.0
    assert Row("latency", "ms", 5.0, 10.0, less_is_better=True).ratio() == 2.0
    assert Row("rate", "1/s", None, 10.0).cells()[1:] == ["·", "10.0", "·"]
