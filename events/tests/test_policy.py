"""Policies: what a candidate may change, what it may not say, and the one rule of the threshold."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.models import Agent
from compliance.core.errors import Invalid
from events.ingest import reactions
from events.risk.evaluation.policy import candidate_of, is_breach, weighing
from events.risk.scoring.reasons import WEIGHTS
from events.tests.conftest import World
from events.tests.factories import store_event
from events.tests.simulated import LIVE

START = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
SECONDS = (0, 1, 60, 300, 449.999999, 450, 450.000001, 899.999999, 900, 900.000001)
GAPS = tuple(timedelta(seconds=seconds) for seconds in SECONDS)


@pytest.mark.parametrize(
    ("changes", "is_rescored"),
    [
        ({"strikes": 2}, False),
        ({"rescore": True}, True),
        ({"scope_rule": False}, True),
        ({"alarm_budget": 0.002}, True),
        ({"weights": {"BURST": 0}}, True),
    ],
)
def test_candidates_that_score_otherwise_have_events_scored_anew(
    changes: dict[str, Any], is_rescored: bool
) -> None:
    assert candidate_of(LIVE | changes).rescored is is_rescored


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"threshold": 0}, "threshold"),
        ({"threshold": 1.5}, "threshold"),
        ({"threshold": "high"}, "threshold"),
        ({"strikes": 0}, "strikes"),
        ({"strikes": 51}, "strikes"),
        ({"strikes": 2.5}, "strikes"),
        ({"window_minutes": -1}, "window_minutes"),
        ({"window": 5}, "window"),
        ({"weights": {"LUCK": 1}}, "LUCK"),
        ({"weights": {"BURST": -1}}, "weights"),
        ({"weights": {"MARKED_ALONE": 0}}, "MARKED_ALONE"),
        ({"weights": {"MARKED_ALONE": 1}}, "MARKED_ALONE"),
    ],
)
def test_senseless_candidates_are_refused_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Invalid, match=words):
        candidate_of(LIVE | changes)


def test_weights_count_inside_the_block_only() -> None:
    policy = candidate_of(LIVE | {"weights": {"BURST": 7, "FAILURE": 0}})
    before = WEIGHTS["BURST"], WEIGHTS["FAILURE"]

    with weighing(policy):
        inside = WEIGHTS["BURST"], WEIGHTS["FAILURE"]
    after = WEIGHTS["BURST"], WEIGHTS["FAILURE"]

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

        counted = reactions.strikes_of(agent, now=at) >= 3
        assert is_breach(received, strikes=3, window=timedelta(minutes=15)) is counted
