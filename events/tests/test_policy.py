"""Policies: what a candidate may change, what it may not say, and the one rule of the threshold."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.models import Agent
from compliance.core.errors import Invalid
from events.ingest import threshold
from events.risk.evaluation.policy import RiskPolicy, candidate_of, live_policy, weighing
from events.risk.scoring import weights
from events.risk.strikes import is_breach
from events.tests.conftest import World
from events.tests.factories import store_event

START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
SECONDS = (0, 1, 60, 300, 449.999999, 450, 450.000001, 899.999999, 900, 900.000001)
GAPS = tuple(timedelta(seconds=seconds) for seconds in SECONDS)


def test_live_policy_is_three_high_events_in_fifteen_minutes() -> None:
    assert live_policy() == RiskPolicy(threshold=0.85, strikes=3, window_minutes=15)


def test_what_a_candidate_leaves_out_stays() -> None:
    candidate = candidate_of(b'{"strikes": 2}', live_policy())

    assert candidate == RiskPolicy(threshold=0.85, strikes=2, window_minutes=15)
    assert not candidate.rescored


@pytest.mark.parametrize(
    "changes",
    [{"rescore": True}, {"scope_rule": False}, {"weights": {"BURST": 0}}, {"model_version": "2.2"}],
)
def test_candidates_that_score_otherwise_have_events_scored_anew(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("events.risk.evaluation.policy.MODEL_VERSION", "2.2")

    assert candidate_of(changes, live_policy()).rescored


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (b"{", "candidate"),
        (b"[]", "object"),
        (b"\xff", "candidate"),
        (b'{"threshold": 0}', "threshold"),
        (b'{"threshold": 1.5}', "threshold"),
        (b'{"threshold": "high"}', "threshold"),
        (b'{"strikes": 0}', "strikes"),
        (b'{"strikes": 51}', "strikes"),
        (b'{"strikes": 2.5}', "strikes"),
        (b'{"window_minutes": -1}', "window_minutes"),
        (b'{"window": 5}', "window"),
        (b'{"weights": {"LUCK": 1}}', "LUCK"),
        (b'{"weights": {"BURST": -1}}', "weights"),
        (b'{"weights": {"MARKED_ALONE": 0}}', "MARKED_ALONE"),
        (b'{"weights": {"MARKED_ALONE": 1}}', "MARKED_ALONE"),
        (b'{"model_version": "1.0"}', "model"),
    ],
)
def test_senseless_candidates_are_refused_in_words(changes: bytes, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        candidate_of(changes, live_policy())


def test_weights_count_inside_the_block_only() -> None:
    policy = candidate_of({"weights": {"BURST": 7, "FAILURE": 0}}, live_policy())
    before = weights.BURST, weights.FAILURE

    with weighing(policy):
        inside = weights.BURST, weights.FAILURE
    after = weights.BURST, weights.FAILURE

    assert inside == (7.0, 0.0)
    assert after == before


@pytest.mark.parametrize("seed", range(4))
def test_rule_and_count_in_the_database_agree_on_random_streams(world: World, seed: int) -> None:
    chance = random.Random(seed)
    agent, at, received = Agent.objects.get(id=world.agent.id), START, list[datetime]()

    for _ in range(40):
        if chance.random() < 0.1:
            agent.reinstated_at = at
            received.clear()
            at += timedelta(microseconds=1)
        at += chance.choice(GAPS)
        store_event(agent, 0.9, at)
        received.append(at)

        counted = threshold.strikes_of(agent, now=at) >= 3
        assert is_breach(received, strikes=3, window=timedelta(minutes=15)) is counted
