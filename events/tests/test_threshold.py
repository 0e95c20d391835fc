"""Three high-risk events in fifteen minutes stop an agent, once, with the third event's own transaction."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail

from agents import mailing
from agents.errors import AgentNotActive
from agents.models import Agent, AgentStatus
from agents.tests.factories import ACTOR
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from certificates import services as certificates
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.tasks import ENVIRONMENT_HEADER
from compliance.tests.client import ApiClient
from compliance.tests.threads import all_at_once
from events import tasks
from events.ingest import reactions
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent
from events.tests.conftest import World
from events.tests.factories import make_event, make_high_event, store_event
from events.tests.simulated import START, high_events, minutes, reinstated
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant
from webhooks.models import Webhook
from webhooks.openapi import EXAMPLE_DATA


def heard(world: World) -> Counter[str]:
    return Counter(world.messages().values_list("event", flat=True))


def audited(world: World) -> Counter[str]:
    return Counter(AuditEntry.objects.for_tenant(world.tenant.id).values_list("event_type", flat=True))


def status_of(agent: Agent) -> str:
    return Agent.objects.get(id=agent.id).status


@pytest.mark.parametrize(
    ("times", "stopped"),
    [((0, 7, 15), True), ((0, 7, 15.1), False), ((0, 14, 20, 27), True), ((0, 10, 20, 30), False)],
)
def test_window_is_fifteen_minutes_of_the_receive_clock(
    world: World, times: tuple[float, ...], stopped: bool
) -> None:
    high_events(world.agent, *times)

    assert (status_of(world.agent) == AgentStatus.SUSPENDED) is stopped


def test_backdated_events_count_by_when_they_were_received(world: World) -> None:
    for day in range(3):
        make_high_event(
            world.agent, received_at=minutes(day), occurred_at=START - timedelta(days=100 * (day + 1))
        )

    assert status_of(world.agent) == AgentStatus.SUSPENDED


def test_ordinary_events_between_do_not_dilute_the_strikes(world: World) -> None:
    for minute in range(3):
        high_events(world.agent, minute)
        for number in range(10 if minute < 2 else 0):
            make_event(world.agent, received_at=minutes(minute) + timedelta(seconds=number))

    assert status_of(world.agent) == AgentStatus.SUSPENDED


def test_medium_events_are_no_strikes(world: World) -> None:
    for minute in (0, 1):
        make_event(world.agent, "transaction_anomaly", received_at=minutes(minute))
    high_events(world.agent, 2, 3)

    assert status_of(world.agent) == AgentStatus.ACTIVE


def test_first_high_event_is_audited_announced_and_opens_a_review(world: World) -> None:
    world.listen()

    make_high_event(world.agent, received_at=START)

    agent = Agent.objects.get(id=world.agent.id)
    entries = audited(world)
    assert heard(world) == {"risk.alert": 1, "agent.high_risk": 1}
    assert entries[AuditAction.EVENT_HIGH_RISK] == 1
    assert entries[AuditAction.AGENT_REVIEW_TRIGGERED] == 1
    assert agent.last_high_risk_at == START
    assert agent.risk_score >= 0.85


def test_announcements_carry_what_the_receivers_guide_promises(world: World) -> None:
    world.listen()

    events = high_events(world.agent, 0, 1, 2)

    alert, first, breach = (
        json.loads(bytes(message.body))["data"]
        for message in (
            world.messages("risk.alert").earliest("created_at"),
            world.messages("agent.high_risk").earliest("created_at"),
            world.messages("agent.high_risk").latest("created_at"),
        )
    )
    assert set(alert) == set(EXAMPLE_DATA["risk.alert"])
    assert set(alert["reasons"][0]) == set(EXAMPLE_DATA["risk.alert"]["reasons"][0])
    assert set(first) == set(breach) == set(EXAMPLE_DATA["agent.high_risk"])
    assert (first["high_events"], first["threshold_breached"]) == (1, False)
    assert (breach["high_events"], breach["threshold_breached"]) == (3, True)
    assert breach["event_id"] == str(events[2].id)


def test_the_last_strike_but_one_warns_until_when_another_one_stops_the_agent(world: World) -> None:
    world.listen()

    events = high_events(world.agent, 0, 16, 20)

    (warning,) = (json.loads(bytes(message.body))["data"] for message in world.messages("agent.strike"))
    assert set(warning) == set(EXAMPLE_DATA["agent.strike"])
    assert (warning["strikes"], warning["of"], warning["event_id"]) == (2, 3, str(events[2].id))
    assert warning["window_ends_at"] == minutes(31).isoformat().replace("+00:00", "Z")
    assert audited(world)[AuditAction.AGENT_STRIKE] == 1
    assert status_of(world.agent) == AgentStatus.ACTIVE


def test_owner_is_told_of_the_warning_and_of_the_stop(world: World, settings: Any) -> None:
    world.listen()
    settings.EMAIL_HOST = "mail.example.org"  # Django's tests keep the messages
    owner = {"name": "Kim Berg", "email": "kim@example.com"}
    Agent.objects.filter(id=world.agent.id).update(owner_name=owner["name"], owner_email=owner["email"])

    high_events(world.agent, 0, 16, 20, 21)
    mailing.send_due(now=minutes(22))

    warned, stopped = mail.outbox
    assert warned.to == stopped.to == [owner["email"]]
    assert (warned.subject, stopped.subject) == (
        f"Agent {world.agent.name} is one strike from a stop",
        f"Agent {world.agent.name} is suspended",
    )
    for name in ("agent.strike", "agent.suspended", "agent.halted"):
        (message,) = world.messages(name)
        assert json.loads(bytes(message.body))["data"]["owner"] == owner


def test_old_strikes_do_not_count_after_reinstatement(world: World) -> None:
    high_events(world.agent, 0, 1, 2)
    again = reinstated(world.agent, minutes(4))

    high_events(again, 5, 6)

    assert status_of(world.agent) == AgentStatus.ACTIVE
    high_events(again, 7)
    assert status_of(world.agent) == AgentStatus.SUSPENDED


def test_suspending_and_reinstating_clears_no_strikes(world: World) -> None:
    given: dict[str, Any] = {"tenant_id": world.tenant.id, "agent_id": world.agent.id, "actor": ACTOR}
    high_events(world.agent, 0, 1)
    certificates.suspend_agent(**given, reason="a look", now=minutes(2))
    certificates.reinstate_agent(may_undo_stop=True, **given, reason="fine", now=minutes(3))

    high_events(world.agent, 4)

    assert status_of(world.agent) == AgentStatus.SUSPENDED
    certificates.reinstate_agent(may_undo_stop=True, **given, reason="fixed", now=minutes(5))
    told = AuditEntry.objects.about(world.agent.id).of_type("agent.reinstated").order_by("created_at", "id")
    assert [(entry.metadata or {})["strikes_cleared"] for entry in told] == [0, 3]
    assert [entry.description.endswith("(strikes cleared: 3)") for entry in told if entry.description] == [
        False,
        True,
    ]


def test_strikes_of_one_agent_do_not_count_against_another(world: World) -> None:
    other = make_certified_agent(world.tenant)
    for agent in (world.agent, other):
        high_events(agent, 0, 1)

    assert {status_of(world.agent), status_of(other)} == {AgentStatus.ACTIVE}


def test_sweep_stops_an_agent_that_ingest_left_over_the_threshold(world: World) -> None:
    high_events(world.agent, 0, 1)
    store_event(world.agent, 0.9, minutes(1))

    reactions.sweep(now=minutes(2))

    assert audited(world)[AuditAction.AGENT_HIGH_RISK] == 1
    reactions.sweep(now=minutes(2))
    assert audited(world)[AuditAction.AGENT_HIGH_RISK] == 1
    assert status_of(world.agent) == AgentStatus.SUSPENDED
    assert Certificate.objects.get(agent=world.agent).status == "revoked"


def test_sweep_stops_agents_of_its_environment_only(world: World) -> None:
    def run(environment: Environment) -> None:
        tasks.sweep_high_risk.apply(headers={ENVIRONMENT_HEADER: environment.value}, throw=True)

    def over_the_threshold(agent: Agent) -> Agent:
        for _ in range(3):
            store_event(agent, 0.9, now())
        return agent

    over_the_threshold(world.agent)
    with environments.use(Environment.TEST):
        sandboxed = over_the_threshold(make_certified_agent(Tenant.objects.get(id=world.tenant.id)))
        run(Environment.TEST)
        assert status_of(sandboxed) == AgentStatus.SUSPENDED

    assert status_of(world.agent) == AgentStatus.ACTIVE
    run(Environment.LIVE)
    assert status_of(world.agent) == AgentStatus.SUSPENDED


def test_simultaneous_high_events_stop_the_agent_exactly_once(committed: None) -> None:
    tenant = make_tenant()
    agent = make_certified_agent(tenant)
    world = World(tenant, agent, ApiClient())
    world.listen()

    answers = all_at_once([lambda: make_high_event(agent)] * 12)

    assert Counter(map(type, answers)) == {ScoredEvent: 3, AgentNotActive: 9}
    assert BehaviorEvent.objects.of_agent(agent.id).count() == 3
    assert status_of(agent) == AgentStatus.SUSPENDED
    assert heard(world) == {
        "risk.alert": 3,
        "agent.strike": 1,
        "agent.high_risk": 2,
        "agent.suspended": 1,
        "agent.halted": 1,
        "certificate.revoked": 1,
        "incident.opened": 1,
    }
    entries = audited(world)
    assert (entries[AuditAction.EVENT_HIGH_RISK], entries[AuditAction.AGENT_HIGH_RISK]) == (3, 1)
    Webhook.objects.filter(tenant=tenant).update(active=False)
