"""An observed agent is scored, audited and announced as ever, and never stopped by the service."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from agents import services as agents
from agents.models import Agent, AgentStatus, OwnerMail
from agents.tests.factories import ACTOR
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from certificates import services as certificates
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.tests.threads import all_at_once, in_thread, somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from events.ingest import reactions
from events.models import BehaviorEvent
from events.tests.conftest import World
from events.tests.factories import make_high_event, store_event
from events.tests.simulated import START, high_events, minutes
from tenancy import services as tenancy
from tenancy.models import Enforcement
from tenancy.tests.factories import make_tenant
from webhooks.openapi import EXAMPLE_DATA

OBSERVE, ENFORCE = Enforcement.OBSERVE, Enforcement.ENFORCE


def set_mode(world: World, agents_own: str | None, tenants: str = ENFORCE) -> None:
    given: dict[str, Any] = {"tenant_id": world.tenant.id, "actor": ACTOR, "now": START}
    agents.update(**given, agent_id=world.agent.id, changes={"enforcement": agents_own})
    tenancy.change_setting(**given, name="enforcement", value=Enforcement(tenants), reason="pilot")


@pytest.fixture
def observed(world: World) -> World:
    """A world whose agent is only observed, and a webhook for every event name."""
    set_mode(world, OBSERVE)
    world.listen()
    return world


def standing_of(agent: Agent) -> tuple[str, str]:
    return Agent.objects.get(id=agent.id).status, Certificate.objects.filter(agent=agent).latest("id").status


def notes(world: World) -> list[dict[str, Any]]:
    """The metadata of what would have stopped the agent, oldest first."""
    found = AuditEntry.objects.about(world.agent.id).of_type(AuditAction.AGENT_WOULD_HAVE_STOPPED)
    return [entry.metadata or {} for entry in found.order_by("created_at", "id")]


def told(world: World, event: str) -> list[dict[str, Any]]:
    sent = world.messages(event).order_by("created_at", "id")
    return [json.loads(bytes(message.body))["data"] for message in sent]


@pytest.mark.parametrize(
    ("agents_own", "tenants", "status"),
    [
        (None, ENFORCE, AgentStatus.SUSPENDED),
        (None, OBSERVE, AgentStatus.ACTIVE),
        (ENFORCE, OBSERVE, AgentStatus.SUSPENDED),
        (OBSERVE, ENFORCE, AgentStatus.ACTIVE),
        (OBSERVE, OBSERVE, AgentStatus.ACTIVE),
    ],
)
def test_agents_own_mode_counts_before_its_tenants(
    world: World, agents_own: str | None, tenants: str, status: str
) -> None:
    set_mode(world, agents_own, tenants)

    high_events(world.agent, 0, 1, 2)

    assert standing_of(world.agent)[0] == status


def test_the_third_strike_is_audited_with_its_event_and_window(observed: World) -> None:
    high_events(observed.agent, 0, 1, 2)

    third = observed.events().latest("received_at")
    (note,) = notes(observed)
    assert (note["strikes"], note["window_minutes"]) == (3, 15)
    assert (note["event_id"], note["risk_score"]) == (str(third.id), third.risk_score)
    assert Agent.objects.get(id=observed.agent.id).would_have_stopped_at == minutes(2)
    audited = Counter(AuditEntry.objects.for_tenant(observed.tenant.id).values_list("event_type", flat=True))
    assert audited[AuditAction.EVENT_HIGH_RISK] == audited[AuditAction.AGENT_REVIEW_TRIGGERED] == 3
    assert audited[AuditAction.AGENT_SUSPENDED] == audited[AuditAction.CERTIFICATE_REVOKED] == 0
    assert audited[AuditAction.AGENT_HIGH_RISK] == 0


def test_a_series_is_announced_as_ever_and_says_once_what_would_have_been(observed: World) -> None:
    high_events(observed.agent, 0, 1, 2, 3, 4)

    heard = Counter(observed.messages().values_list("event", flat=True))
    alerts, high = told(observed, "risk.alert"), told(observed, "agent.high_risk")
    assert heard == {"risk.alert": 5, "agent.high_risk": 2, "agent.strike": 1}
    assert [alert.get("would_have_stopped") for alert in alerts] == [None, None, True, None, None]
    assert set(alerts[2]) - {"would_have_stopped"} == set(EXAMPLE_DATA["risk.alert"])
    assert [one["threshold_breached"] for one in high] == [False, True]
    assert [one.get("would_have_stopped") for one in high] == [None, True]


def test_no_owner_is_told_of_a_stop_that_does_not_come(observed: World, settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example.com"
    people = {"owner_name": "Kim Berg", "owner_email": "kim@example.com"}
    Agent.objects.filter(id=observed.agent.id).update(**people)

    high_events(observed.agent, 0, 1)

    (entry,) = AuditEntry.objects.about(observed.agent.id).of_type(AuditAction.AGENT_STRIKE)
    assert "from the threshold, which does not stop it, until" in (entry.description or "")
    assert not OwnerMail.objects.exists()


@pytest.mark.parametrize(
    ("times", "noted"),
    [
        ((0, 1, 2, 3, 4, 5), 1),
        ((0, 7, 14, 21, 28, 35), 1),
        ((0, 1, 2, 16.5, 17), 1),
        ((0, 1, 2, 18, 19, 20), 2),
        ((0, 1, 16, 17), 0),
    ],
)
def test_each_series_of_strikes_is_recorded_once(
    observed: World, times: tuple[float, ...], noted: int
) -> None:
    high_events(observed.agent, *times)

    assert len(notes(observed)) == noted
    assert sum("would_have_stopped" in alert for alert in told(observed, "risk.alert")) == noted


def test_suspension_by_a_person_does_not_end_a_series(observed: World) -> None:
    high_events(observed.agent, 0, 1, 2)
    given: dict[str, Any] = {"tenant_id": observed.tenant.id, "agent_id": observed.agent.id}
    given |= {"reason": "x", "actor": ACTOR}
    certificates.suspend_agent(**given, now=minutes(3))
    certificates.reinstate_agent(**given, may_undo_stop=True, now=minutes(4))

    high_events(observed.agent, 5, 6)
    assert len(notes(observed)) == 1
    high_events(observed.agent, 7)

    assert len(notes(observed)) == 1


def test_sweep_stops_no_observed_agent_and_notes_it_once(observed: World) -> None:
    set_mode(observed, ENFORCE)
    high_events(observed.agent, 0, 1)
    store_event(observed.agent, 0.9, minutes(1))
    set_mode(observed, OBSERVE)

    stopped = [reactions.sweep(now=minutes(at)) for at in (2, 3, 14)]

    assert stopped == [0, 0, 0]
    assert standing_of(observed.agent) == ("active", "active")
    assert len(notes(observed)) == 1
    assert [alert.get("would_have_stopped") for alert in told(observed, "risk.alert")] == [None, None, True]


def test_sweep_repeats_nothing_that_ingest_recorded(observed: World) -> None:
    high_events(observed.agent, 0, 1, 2, 3)

    for minute in (3, 10, 15.5, 17):
        reactions.sweep(now=minutes(minute))

    assert len(notes(observed)) == 1
    assert len(told(observed, "risk.alert")) == 4


def test_enforcing_again_stops_an_agent_whose_window_still_holds_three(observed: World) -> None:
    high_events(observed.agent, 0, 1, 2)

    set_mode(observed, None)

    assert standing_of(observed.agent) == ("active", "active")
    assert reactions.sweep(now=minutes(14)) == 1
    assert standing_of(observed.agent) == ("suspended", "revoked")


def test_enforcing_again_forgives_strikes_that_left_the_window(observed: World) -> None:
    high_events(observed.agent, 0, 1, 2)
    set_mode(observed, None)

    assert reactions.sweep(now=minutes(15.5)) == 0
    high_events(observed.agent, 18, 19)
    assert standing_of(observed.agent) == ("active", "active")
    high_events(observed.agent, 20)

    assert standing_of(observed.agent) == ("suspended", "revoked")


def test_simultaneous_high_events_are_all_accepted_and_noted_once(committed: None) -> None:
    agent = make_certified_agent(make_tenant(), enforcement=OBSERVE)

    all_at_once([lambda: make_high_event(agent)] * 12)

    assert BehaviorEvent.objects.of_agent(agent.id).high_risk().count() == 12
    assert standing_of(agent) == ("active", "active")
    assert AuditEntry.objects.about(agent.id).of_type(AuditAction.AGENT_WOULD_HAVE_STOPPED).count() == 1


@pytest.mark.parametrize(("before", "after"), [(ENFORCE, OBSERVE), (OBSERVE, ENFORCE)])
def test_mode_that_changes_while_the_third_strike_waits_counts(
    committed: None, before: Enforcement, after: Enforcement
) -> None:
    agent = make_certified_agent(make_tenant())
    given: dict[str, Any] = {"tenant_id": agent.tenant_id, "reason": "pilot", "actor": ACTOR, "now": START}
    tenancy.change_setting(name="enforcement", **given, value=before)
    for _ in range(2):
        make_high_event(agent)

    with ThreadPoolExecutor(1) as pool:
        with environments.atomic():
            Agent.objects.for_tenant(agent.tenant_id).locked().find(agent.id)
            third = pool.submit(in_thread, partial(make_high_event, agent))
            assert eventually(somebody_waits_for_a_lock)
            tenancy.change_setting(name="enforcement", **given, value=after)
        third.result()

    assert standing_of(agent)[0] == ("active" if after == OBSERVE else "suspended")


def test_tenants_mode_is_read_once_for_the_warning_and_at_the_breach(world: World) -> None:
    reads = []
    for minute in range(3):
        with CaptureQueriesContext(connections["default"]) as captured:
            high_events(world.agent, minute)
        reads.append(sum('FROM "tenancy_tenant"' in query["sql"] for query in captured))

    assert reads == [1, 1, 1]  # at first its alarm budget


def test_people_still_stop_an_observed_agent(observed: World) -> None:
    answer = observed.api.post(f"/v1/agents/{observed.agent.id}/suspend", {"reason": "odd"})

    assert answer.status_code == 200
    assert standing_of(observed.agent) == ("suspended", "revoked")
