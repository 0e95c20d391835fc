"""Dormant agents: told once, ended by the next event, suspended after a second limit."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from agents.models import Agent
from auditlog.models import AuditEntry
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent, reinstate_agent
from compliance.core.clock import now
from compliance.core.json_values import written
from events.activity.dormancy import end_dormancies, find_dormant
from events.tests.conftest import World, make_world
from events.tests.factories import store_event
from webhooks.openapi import EXAMPLE_DATA
from webhooks.tests.factories import make_webhook

DAY = timedelta(days=1)


@pytest.fixture
def world() -> World:
    """An agent that has been active for 40 days."""
    world = make_world()
    make_webhook(world.tenant, events=["agent.dormant", "agent.suspended"])
    Agent.objects.filter(id=world.agent.id).update(status_changed_at=now() - 40 * DAY)
    return world


def sweep(at: datetime) -> int:
    return find_dormant(now=at)


def fresh(agent: Agent) -> Agent:
    return Agent.objects.get(id=agent.id)


def told(world: World) -> list[dict[str, Any]]:
    return [json.loads(bytes(one.body))["data"] for one in world.messages("agent.dormant")]


def test_silent_agent_is_told_once(world: World) -> None:
    moment = now()
    last = store_event(world.agent, 0.1, moment - 35 * DAY)

    counts = [sweep(moment), sweep(moment + DAY)]

    assert counts == [1, 0]
    assert fresh(world.agent).dormant_at == moment
    (data,) = told(world)
    assert set(data) == set(EXAMPLE_DATA["agent.dormant"])
    assert data["last_event_at"] == written(last.received_at)
    (entry,) = AuditEntry.objects.about(world.agent.id).of_type("agent.dormant")
    assert entry.actor_type == "system"


@pytest.mark.parametrize("minutes", [-1, 1])
def test_limit_is_to_the_minute(world: World, minutes: int) -> None:
    moment = now()
    store_event(world.agent, 0.1, moment - 30 * DAY + timedelta(minutes=minutes))

    assert sweep(moment) == (minutes < 0)


def test_agent_that_never_reported_counts_from_its_activation(world: World) -> None:
    young = make_certified_agent(world.tenant)

    assert sweep(now()) == 1
    assert (fresh(world.agent).dormant_at is not None, fresh(young).dormant_at) == (True, None)
    assert [data["last_event_at"] for data in told(world)] == [None]


def test_next_event_ends_it_and_the_next_silence_is_told_again(world: World) -> None:
    moment = now()
    sweep(moment)
    store_event(world.agent, 0.1, moment + timedelta(minutes=1))

    ended = [end_dormancies(), end_dormancies()]
    is_dormant = fresh(world.agent).dormant_at is not None
    again = sweep(moment + 32 * DAY)

    assert (ended, is_dormant, again) == ([1, 0], False, 1)
    assert len(told(world)) == 2


def test_event_ends_it_over_the_api(world: World) -> None:
    sweep(now())

    answer = world.api.post("/v1/events", world.report())

    assert (answer.status_code, end_dormancies()) == (201, 1)


def test_suspended_after_the_second_limit(world: World, settings: Any) -> None:
    settings.DORMANT_SUSPEND_DAYS = 60
    moment = now()

    counts = [sweep(moment), sweep(moment + 10 * DAY), sweep(moment + 21 * DAY), sweep(moment + 22 * DAY)]

    agent = fresh(world.agent)
    assert counts == [1, 0, 1, 0]
    assert (agent.status, agent.status_reason) == ("suspended", "Dormant: no event for 60 days")
    assert agent.dormant_at is None
    certificate = Certificate.objects.get(agent=agent)
    assert (certificate.status, certificate.revocation_code) == ("revoked", "certificateHold")
    assert world.messages("agent.suspended").count() == 1


def test_reinstated_agent_starts_anew(world: World, settings: Any) -> None:
    settings.DORMANT_SUSPEND_DAYS = 35
    moment = now()
    assert [sweep(moment), sweep(moment)] == [2, 0]

    reinstate_agent(world.agent, at=moment)

    assert [sweep(moment + 29 * DAY), sweep(moment + 31 * DAY)] == [0, 1]


def test_observed_agent_is_told_and_never_suspended(world: World, settings: Any) -> None:
    settings.DORMANT_SUSPEND_DAYS = 31
    Agent.objects.filter(id=world.agent.id).update(enforcement="observe")

    assert [sweep(now()), sweep(now() + 60 * DAY)] == [1, 0]
    assert fresh(world.agent).status == "active"


def test_list_is_filtered_by_dormancy_name_id_and_hash(world: World) -> None:
    other = make_certified_agent(world.tenant, name="Trade-Bot 100%", model_hash="sha256:cd")
    foreign = make_world()
    sweep(now())

    def listed(query: str) -> set[str]:
        answer = world.api.get(f"/v1/agents?{query}")
        return {row["id"] for row in answer.json()["data"]}

    mine, theirs = str(world.agent.id), str(other.id)
    assert listed("dormant=true") == {mine}
    assert listed("dormant=false") == {theirs}
    assert listed("model_hash=sha256:cd") == {theirs}
    assert listed("q=trade-bot") == listed("q=100%25") == listed(f"q={theirs[-12:].upper()}") == {theirs}
    assert listed("q=trade-bot&dormant=true") == listed(f"q={foreign.agent.id}") == set()
    assert world.api.get("/v1/agents?dormant=1").status_code == 400
