"""Scored anew by the same model, past events get the scores that the live service gave them."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.models import Certificate
from certificates.tests.factories import make_certificate, make_certified_agent
from compliance.core.clock import now
from compliance.core.identifiers import first_id_at
from events.models import ReviewVerdict, ScorerProgress
from events.risk import baselines
from events.risk.evaluation import rescoring
from events.risk.evaluation.rescoring import POOL_EVERY
from events.tests.factories import judge, make_event
from events.tests.simulated import simulated
from tenancy.tests.factories import make_tenant

BEGIN = now() - timedelta(days=14)
EVIL = {"tool": "pay", "to": "mule-7", "amount_usd": 5_000}


@pytest.fixture
def agents(committed: None) -> Iterator[list[Agent]]:
    """Agents of one tenant, one of them with a scope; the pooling of baselines begins with them."""
    tenant = make_tenant()
    scoped = make_agent(tenant, metadata={"permitted_actions": ["pay", "read_file"]})
    make_certificate(scoped)
    before = {row.name: row.upto for row in ScorerProgress.objects.all()}
    ScorerProgress.objects.update(upto=first_id_at(BEGIN))
    yield [Agent.objects.get(id=scoped.id), *(make_certified_agent(tenant) for _ in range(2))]
    for name, upto in before.items():
        ScorerProgress.objects.filter(name=name).update(upto=upto)


class Past:
    """Lets the service live through days: events are stored as they come, and pooled as time goes by."""

    def __init__(self) -> None:
        self.at, self._pooled_at = BEGIN, datetime.min.replace(tzinfo=BEGIN.tzinfo)

    def report(self, agent: Agent, gap: timedelta, action_type: str, **details: Any) -> Any:
        self.at += gap
        if self.at >= self._pooled_at + POOL_EVERY:
            self._pooled_at = self.at
            baselines.pool_new(now=self.at)
            baselines._kept.clear()
        return make_event(agent, action_type, details=details, received_at=self.at)


def live_through(past: Past, agents: list[Agent], count: int, *, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        gap = timedelta(seconds=chance.choice((5, 60, 900, 7_200)))
        action_type = chance.choice(("api_call", "api_call", "data_access", "transaction_initiated"))
        details = {
            "tool": chance.choice(("pay", "read_file", "send_email")),
            "to": chance.choice(
                ("ann@known.example", "bob@known.example", f"x{chance.randrange(9)}@new.example")
            ),
            "amount_usd": round(chance.lognormvariate(4, 1), 2),
        }
        agent = chance.choice(agents[1:]) if details["tool"] == "send_email" else chance.choice(agents)
        past.report(agent, gap, action_type, **details)


def test_stored_scores_are_met_again(agents: list[Agent], monkeypatch: pytest.MonkeyPatch) -> None:
    past = Past()
    live_through(past, agents, 150, seed=1)
    attack = past.report(agents[1], timedelta(hours=1), "transaction_anomaly", **EVIL)
    judge(attack, ReviewVerdict.CONFIRMED, at=past.at + timedelta(minutes=5))
    live_through(past, agents, 30, seed=2)
    marked = past.report(agents[2], timedelta(hours=1), "transaction_initiated", **EVIL)
    judge(marked, ReviewVerdict.CONFIRMED, at=past.at + timedelta(minutes=5))
    reported = past.report(agents[1], timedelta(hours=1), "transaction_anomaly", **EVIL)
    off_scope = past.report(agents[0], timedelta(hours=1), "api_call", tool="send_email")
    young = make_certified_agent(agents[0].tenant)
    live_through(past, [agents[0], young], 15, seed=3)
    ordinary = past.report(agents[1], timedelta(hours=1), "authentication_failure", to="x@late.example")
    judge(ordinary, ReviewVerdict.DISMISSED, at=past.at + timedelta(minutes=1))
    live_through(past, agents, 3, seed=4)

    found = simulated(young.tenant, {"rescore": True})
    monkeypatch.setattr(rescoring, "DELAY", timedelta(days=300))
    without_baseline = simulated(young.tenant, {"rescore": True})

    bands = [event.risk_band for event in (attack, marked, reported, off_scope)]
    assert bands == ["medium", "medium", "high", "high"]
    for event in (marked, reported):
        assert "confirmed_destination" in {reason.name for reason in event.reasons}
    assert found.events == found.comparable_scores == found.equal_scores == 203
    assert without_baseline.equal_scores < 203


def test_without_the_scope_rule_a_scope_stops_nobody(agents: list[Agent]) -> None:
    past = Past()
    past.report(agents[0], timedelta(minutes=1), "api_call", tool="pay")
    for _ in range(3):
        past.report(agents[0], timedelta(minutes=1), "api_call", tool="send_email")

    with_rule, without = (
        simulated(agents[0].tenant, {"rescore": True, "scope_rule": on}) for on in (True, False)
    )

    assert (with_rule.candidate_stops, with_rule.reproduced) == (1, 1)
    assert (without.candidate_stops, without.reproduced) == (0, 1)


def test_weights_change_scores(agents: list[Agent]) -> None:
    past = Past()
    live_through(past, agents[1:], 60, seed=1)

    heavier = simulated(
        agents[0].tenant, {"weights": {"NEW_DESTINATION": 50}, "threshold": 0.5, "strikes": 1}
    )

    assert heavier.candidate_stops > heavier.live_stops == 0
    assert heavier.equal_scores < heavier.comparable_scores


def test_differences_may_weigh_nothing(agents: list[Agent]) -> None:
    live_through(Past(), agents[1:], 60, seed=1)
    unweighed = dict.fromkeys(("NEW_DESTINATION", "READ_THEN_SEND", "EXTERNAL_HOST"), 0)

    found = simulated(agents[0].tenant, {"weights": unweighed})

    assert found.comparable_scores == 60
    assert 0 < found.equal_scores < 60


def test_scopes_are_those_certified_at_the_time(agents: list[Agent]) -> None:
    past, agent = Past(), agents[0]
    Certificate.objects.filter(agent=agent).update(issued_at=BEGIN)
    for _ in range(2):
        past.report(agent, timedelta(minutes=1), "api_call", tool="pay")
    Agent.objects.filter(id=agent.id).update(metadata={"permitted_actions": []})

    found = simulated(agent.tenant, {"rescore": True, "strikes": 1})

    assert (found.equal_scores, found.candidate_stops) == (2, 0)


def test_few_states_are_kept_awake_without_a_difference(
    agents: list[Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    live_through(Past(), agents, 60, seed=4)
    monkeypatch.setattr(rescoring, "MOST_AWAKE", 1)

    found = simulated(agents[0].tenant, {"rescore": True})

    assert found.equal_scores == found.comparable_scores == 60


def test_an_integer_that_no_float_holds_is_scored_again(agents: list[Agent]) -> None:
    past = Past()
    for number in (10**400, -(10**400), 10**20):
        past.report(agents[1], timedelta(hours=1), "transaction_initiated", to="mule-7", amount=number)

    found = simulated(agents[1].tenant, {"rescore": True})

    assert found.equal_scores == found.comparable_scores == 3
