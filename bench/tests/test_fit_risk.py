"""Weights are fitted to logged columns, across suites and without the one that judges them."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bench.risk_model import fitting
from bench.risk_model.columns import WEIGHTS, columns
from bench.risk_model.figures import COLD, MATURE
from bench.risk_model.fitting import JUDGED, LEAST, START, Sample, evidence, fit, to_fit, worth
from bench.risk_model.regimes import Stream, Streams
from events.risk.evaluation.backtest import NOBODY, read_stream
from events.risk.scoring import weights
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.features.evidence import signals
from events.risk.scoring.habits.comparison import compare
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.model import fold

GOOD, BAD = [name for name in WEIGHTS if name not in JUDGED][:2]
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
EQUAL = {GOOD: START, BAD: START}


def sample(suite: str, told: dict[str, float], untold: dict[str, float], way: str = MATURE) -> Sample:
    """Ten attacks whose differences are `told`, then ninety ordinary events whose are `untold`."""
    lines = [[-3.0, *(each.get(name, 0.0) for name in WEIGHTS)] for each in [told] * 10 + [untold] * 90]
    every = np.ones(100, dtype=bool)
    return Sample(suite, way, np.array(lines), np.arange(100) < 10, every, every, every)


def test_a_difference_that_tells_attacks_gains_weight_over_one_of_ordinary_events() -> None:
    samples = [sample("a", {GOOD: 1.0}, {BAD: 1.5}), sample("b", {GOOD: 1.0}, {BAD: 1.5})]

    chosen = fit(samples, EQUAL)

    assert chosen[GOOD] > 1.5 * chosen[BAD]
    assert min(chosen.values()) >= LEAST
    assert worth(samples, chosen) > worth(samples, EQUAL)


def test_what_helps_one_suite_and_hurts_another_is_worth_less_than_a_little_for_both() -> None:
    helped, hurt = sample("a", {GOOD: 1.0}, {}), sample("b", {}, {GOOD: 1.0})
    both = [sample("a", {GOOD: 1.0, BAD: 1.0}, {}), sample("b", {BAD: 1.0}, {GOOD: 1.0})]

    assert worth([helped, hurt], EQUAL) < worth(both, EQUAL)


def test_what_no_event_shows_and_what_is_judged_is_not_fitted() -> None:
    samples = [sample("a", {GOOD: 1.0}, {}), sample("b", dict.fromkeys(JUDGED, 1.0), {BAD: 1.0})]

    assert set(WEIGHTS) > JUDGED
    assert to_fit(samples) == [GOOD, BAD]
    assert to_fit(samples[:1]) == [GOOD]


@pytest.mark.parametrize(
    "details",
    [
        {"tool": "send", "targets": ["friend@home.example"]},
        {"tool": "send", "targets": ["eve@evil.example"]},
        {"tool": "grant_access", "targets": ["eve@evil.example", "friend@home.example"], "resource": "d/1"},
    ],
)
@pytest.mark.parametrize("chosen", [{}, {"READ_THEN_SEND": 0.3, "NEW_DESTINATION": 3.0}])
def test_columns_times_weights_are_the_evidence_that_the_scorer_sees(
    details: dict[str, object], chosen: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, context = AgentState(), Context(home_domain="home.example")
    for minute in range(20):
        friend = {"tool": "send", "targets": ["friend@home.example"]}
        fold(state, Event("api_call", 1.7e9 + 60 * minute, friend), context)
    fold(state, Event("data_access", 1.7e9 + 1_260, {"tool": "read_mail"}), context)
    event = Event("api_call", 1.7e9 + 1_300, details)

    found = evidence(np.array([columns(state, event, context, None)]), chosen)

    for name, weight in chosen.items():
        monkeypatch.setattr(weights, name, weight)
    seen = signals(compare(state, event), context)
    assert found[0] == pytest.approx(weights.PRIOR_LOGITS["api_call"] + sum(one[1] for one in seen), abs=1e-5)


@pytest.mark.parametrize("way", [MATURE, COLD])
def test_ordinary_events_at_medium_cost_something(way: str) -> None:
    flagged = sample("a", {GOOD: 20.0}, {BAD: 10.0}, way)

    assert worth([flagged], EQUAL) < worth([flagged], EQUAL | {BAD: LEAST})


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

    fits = fitting.fits_without(streams, ["a", "b", fitting.EVERYTHING])
    judged = fitting.judge_with(fitting.labelled(streams), fits)

    assert set(fits) == {"a", "b", fitting.EVERYTHING}
    assert judged["b verbatim", COLD].non_read.auc == judged["b", COLD].non_read.auc == 1.0
    assert {fitting.suite_of(key) for key in judged} == {"a", "b", "payments"}
    assert {name: getattr(weights, name) for name in WEIGHTS} == before
