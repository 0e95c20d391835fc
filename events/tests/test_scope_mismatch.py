"""A new agent whose reports have no name of its scope is not stopped; that is told once."""

import json
from typing import Any

import pytest

from agents.models import Agent, AgentStatus
from auditlog.models import AuditEntry
from auditlog.querysets import AuditEntryQuerySet
from certificates.tests.factories import make_certified_agent
from events.tests.conftest import World
from events.tests.web import Web, body_of, report
from tenancy.tests.factories import make_key, make_tenant
from webhooks.vocabulary import EventName

PATH = "/v1/events"
SCOPE = ["crm.search_contacts", "crm.update_contact", "send_email"]


def make_scoped(world: World) -> Agent:
    return make_certified_agent(world.tenant, metadata={"permitted_actions": SCOPE})


def post(world: World, agent: Agent, **details: Any) -> dict[str, Any]:
    body = {"agent_id": str(agent.id), "action_type": "api_call", "details": details}
    data: dict[str, Any] = world.api.post(PATH, body).json()["data"]
    return data


def audited(agent: Agent) -> AuditEntryQuerySet:
    return AuditEntry.objects.for_tenant(agent.tenant_id).about(agent.id).of_type("agent.scope_mismatch")


def test_name_that_may_be_a_spelling_is_medium_and_says_what_was_expected(world: World) -> None:
    answer = post(world, make_scoped(world), tool="Mailer")

    reason = world.api.get(f"{PATH}/{answer['id']}").json()["data"]["reasons"][0]
    assert answer["risk_band"] == "medium"
    assert (reason["name"], reason["observed"]) == ("scope_mismatch", "mailer")
    assert reason["expected"] == "crm.search_contacts, crm.update_contact, send_email"


def test_agent_is_told_of_once_and_not_stopped(world: World) -> None:
    world.listen()
    agent = make_scoped(world)

    bands = {post(world, agent, tool=f"Mailer{number}")["risk_band"] for number in range(5)}

    agent.refresh_from_db()
    entry = audited(agent).get()
    (message,) = world.messages(EventName.RISK_ALERT)
    told = json.loads(bytes(message.body))["data"]
    assert (bands, agent.status) == ({"medium"}, AgentStatus.ACTIVE)
    assert entry.metadata is not None
    assert entry.metadata["seen"] == told["scope_mismatch"]["seen"] == ["mailer0"]
    assert entry.metadata["expected"] == told["scope_mismatch"]["expected"] == SCOPE
    assert {"agent_id", "event_id", "action_type", "risk_score", "risk_band", "reasons"} <= told.keys()
    assert told["reasons"][0]["name"] == "scope_mismatch"


def test_each_agent_is_told_of(world: World) -> None:
    agents = [make_scoped(world), make_scoped(world)]

    for agent in agents:
        post(world, agent, tool="mailer")

    assert [audited(agent).count() for agent in agents] == [1, 1]


def test_agent_that_used_a_permitted_name_breaks_the_rule(world: World) -> None:
    agent = make_scoped(world)

    post(world, agent, tool="mcp__crm__searchContacts")
    answer = post(world, agent, tool="mailer")

    assert answer["risk_band"] == "high"
    assert not audited(agent).exists()


@pytest.mark.usefixtures("committed")
def test_events_at_the_same_time_are_told_of_once(web: Web) -> None:
    tenant = make_tenant()
    key = str(make_key(tenant))
    agent = make_certified_agent(tenant, metadata={"permitted_actions": SCOPE})

    answers = web.post_all(key, [report(agent, details={"tool": "mailer"})] * 8)

    assert {body_of(answer)["data"]["risk_band"] for answer in answers} == {"medium"}
    assert audited(agent).count() == 1
