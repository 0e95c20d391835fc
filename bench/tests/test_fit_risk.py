"""Weights are fitted by replays, across suites and without the one that judges them."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench.risk_model import fitting
from bench.risk_model.columns import WEIGHTS
from bench.risk_model.figures import COLD, LABELLED, MATURE, PAYMENTS, REAL_TIME, UNSEEN
from bench.risk_model.fitting import FITTED, JUDGED, LEAST, MOST, worth
from bench.risk_model.judging import Judgement, Key, Ranking, Share
from bench.risk_model.regimes import Stream, Streams
from events.risk.evaluation.backtest import NOBODY, read_stream
from events.risk.scoring import weights

BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
GOOD = Judgement(
    all=Ranking(0.9, 0.7, 0.5),
    non_read=Ranking(0.9, 0.7, 0.5),
    rules=(0.8, 0.8),
    medium=Share(10, 1_000),
    high=Share(0, 1_000),
    first=Share(1, 100),
    first_acts=Share(1, 100),
    caught=Share(30, 100),
    innocent=0,
    goals={"deletion": Share(6, 10)},
)


def judged(**others: Judgement) -> dict[Key, Judgement]:
    """Two suites that are met well in every way, but as `others` say of suite a by the way's first word."""
    found = {(suite, way): GOOD for suite in ("a", "b") for way in LABELLED}
    return found | {("a", way): others[way.split()[0]] for way in LABELLED if way.split()[0] in others}


def test_what_public_streams_cannot_tell_is_not_fitted() -> None:
    assert set(FITTED) | JUDGED == set(WEIGHTS)
    assert not JUDGED.intersection(FITTED)


def test_what_helps_one_suite_and_hurts_another_is_worth_less_than_what_both_had() -> None:
    better, worse = (GOOD._replace(non_read=Ranking(auc, 0.7, 0.5)) for auc in (0.95, 0.85))

    assert worth(judged() | {("a", MATURE): better, ("b", MATURE): worse}) < worth(judged())
    assert worth(judged() | {("a", MATURE): better, ("b", MATURE): better}) > worth(judged())


@pytest.mark.parametrize(
    ("way", "worse"),
    [
        ("unseen", {"medium": Share(50, 1_000)}),
        ("mature", {"medium": Share(50, 1_000)}),
        ("cold", {"medium": Share(120, 1_000)}),
        ("cold", {"first": Share(20, 100)}),
        ("mature", {"high": Share(1, 1_000)}),
        ("mature", {"goals": {"deletion": Share(0, 10)}}),
        ("mature", {"caught": Share(0, 100)}),
        ("unseen", {"all": Ranking(0.9, 0.7, 0.1)}),
    ],
)
def test_alarms_and_misses_cost_something(way: str, worse: dict[str, Any]) -> None:
    assert worth(judged(**{way: GOOD._replace(**worse)})) < worth(judged())


def test_payments_and_real_times_count() -> None:
    payments, real_time = {(PAYMENTS, COLD): GOOD}, {(REAL_TIME, COLD): GOOD}
    loud = GOOD._replace(medium=Share(100, 1_000))
    poor = GOOD._replace(all=Ranking(0.8, 0.6, 0.5))

    assert worth(judged() | {(PAYMENTS, COLD): poor}) < worth(judged() | payments)
    assert worth(judged() | {(REAL_TIME, COLD): loud}) < worth(judged() | real_time)


def stream(suite: str) -> Stream:
    """An agent of the suite that sends to a friend for weeks, and is told to send elsewhere at a new task."""
    known = [("u0|clean", "friend")] * 60
    events = [*known, ("u1|clean", "friend"), ("u1|inj", "stranger"), ("u1|inj", "friend")]
    lines = [
        {
            "agent": f"m@{suite}",
            "t": (BEGIN + timedelta(hours=8 * number)).isoformat(),
            "action_type": "api_call",
            "details": {"tool": "send", "targets": [to]},
            "seq": f"m|{suite}|{run}",
            "label_event": "attack" if to == "stranger" else "benign",
        }
        for number, (run, to) in enumerate(events)
    ]
    return Stream(read_stream(json.dumps(line).encode() for line in lines), NOBODY)


def test_a_suite_is_judged_by_weights_that_were_fitted_without_it() -> None:
    suites = {"a": stream("a"), "b": stream("b")}
    streams = Streams(suites, {"b": suites["b"]}, stream("payments"), Stream([], NOBODY), Stream([], NOBODY))
    before = {name: getattr(weights, name) for name in WEIGHTS}
    met = fitting.labelled(streams)

    fits = fitting.fits_without(streams, ["a", fitting.EVERYTHING], steps=[4.0])
    found = fitting.judge_apart(met, fits)

    assert {fitting.suite_of(key) for key in met} == {"a", "b", PAYMENTS, REAL_TIME}
    assert set(fits) == {"a", fitting.EVERYTHING}
    assert found.keys() == met.keys()
    assert found["b verbatim", UNSEEN].non_read.auc == found["b", UNSEEN].non_read.auc == 1.0
    assert found["a", COLD] == fitting.judge_with({("a", COLD): met["a", COLD]}, fits["a"])["a", COLD]
    for chosen in fits.values():
        assert set(chosen) == set(FITTED)
        assert all(LEAST <= weight <= MOST for weight in chosen.values())
    assert {name: getattr(weights, name) for name in WEIGHTS} == before
