"""Stops, revocations and verdicts open the agent's incident, or join it, in their own transaction."""

from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction

from agents.models import Agent
from agents.tests.factories import ACTOR
from certificates import services as certificates
from certificates.issuing import issuance
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent, make_revoked_certificate, suspend_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.threads import all_at_once
from events.models import ReviewVerdict
from events.tests.conftest import World
from events.tests.factories import judge, make_event, make_high_event
from events.tests.simulated import reinstated
from incidents.models import Incident, TimelineEntry
from tenancy.models import Enforcement
from tenancy.tests.factories import make_tenant


def incident_of(agent: Agent) -> Incident:
    return Incident.objects.get(agent_id=agent.id)


def kinds(incident: Incident) -> list[str]:
    return sorted(entry.kind for entry in TimelineEntry.objects.of_incidents([incident.id]))


def stop(agent: Agent) -> str:
    """Three strikes; return the id of the third event."""
    return [make_high_event(agent).id for _ in range(3)][-1]


def test_automatic_stop_opens_a_contained_incident(world: World) -> None:
    third = stop(world.agent)

    incident = incident_of(world.agent)
    (opened,) = TimelineEntry.objects.of_incidents([incident.id])
    assert (incident.cause, incident.state) == ("threshold", "contained")
    assert str(opened.event_id) == third
    assert opened.serial_number == Certificate.objects.get(agent=world.agent).serial_number


def test_verdicts_join_the_incident_of_the_stop(world: World) -> None:
    third = stop(world.agent)

    judge(third)
    judge(third)

    assert kinds(incident_of(world.agent)) == ["joined", "opened"]


def test_confirmed_high_event_opens_an_incident_that_its_revocation_contains(world: World) -> None:
    judge(make_high_event(world.agent).id)
    assert incident_of(world.agent).state == "open"

    certificates.revoke(
        tenant_id=world.tenant.id,
        certificate_id=Certificate.objects.get(agent=world.agent).id,
        reason="Key compromised",
        actor=ACTOR,
        now=now(),
    )

    assert incident_of(world.agent).state == "contained"
    assert kinds(incident_of(world.agent)) == ["changed", "joined", "opened"]


def test_attack_confirmed_after_the_reinstatement_opens_the_incident_again(world: World) -> None:
    first, _, third = [make_high_event(world.agent).id for _ in range(3)]
    judge(first)
    assert incident_of(world.agent).state == "contained"
    reinstated(world.agent, now())

    judge(third)

    incident = incident_of(world.agent)
    assert (incident.state, incident.contained_at) == ("open", None)


def test_reinstatement_joins_the_incident_and_opens_it_again(world: World) -> None:
    stop(world.agent)
    assert incident_of(world.agent).state == "contained"

    reinstated(world.agent, now())

    incident = incident_of(world.agent)
    assert (incident.state, incident.contained_at) == ("open", None)
    assert "reinstated: fixed" in " ".join(entry.text for entry in incident.timeline.all())


def test_other_verdicts_open_nothing(world: World) -> None:
    judge(make_event(world.agent).id)
    judge(make_high_event(world.agent).id, ReviewVerdict.DISMISSED)

    assert not Incident.objects.filter(agent_id=world.agent.id).exists()


@pytest.mark.parametrize(
    ("reason", "opens"),
    [
        ("keyCompromise", True),
        ("policy violation", True),
        ("it bought what nobody asked for", True),
        ("superseded", False),
        ("cessationOfOperation", False),
        ("affiliation changed", False),
    ],
)
def test_administrative_revocations_are_no_incidents(reason: str, opens: bool) -> None:
    certificate = make_revoked_certificate(make_tenant(), reason=reason)

    assert Incident.objects.filter(agent_id=certificate.agent_id).exists() is opens


def test_suspension_renewal_and_retirement_are_no_incidents() -> None:
    tenant = make_tenant()
    held, renewed, retired = (make_certified_agent(tenant) for _ in range(3))

    suspend_agent(held)
    issuance.renew_of_agent(tenant_id=tenant.id, agent_id=renewed.id, actor=ACTOR, now=now())
    certificates.retire_agent(tenant_id=tenant.id, agent_id=retired.id, reason="done", actor=ACTOR, now=now())

    assert not Incident.objects.for_tenant(tenant.id).exists()


def test_observed_agent_has_an_incident_once_a_person_confirms(world: World) -> None:
    Agent.objects.filter(id=world.agent.id).update(enforcement=Enforcement.OBSERVE)

    third = stop(Agent.objects.get(id=world.agent.id))
    assert not Incident.objects.filter(agent_id=world.agent.id).exists()
    judge(third)

    assert incident_of(world.agent).cause == "verdict"


def test_incident_opens_with_the_stop_or_not_at_all(world: World) -> None:
    with environments.atomic():
        stop(world.agent)
        assert Incident.objects.filter(agent_id=world.agent.id).exists()
        transaction.set_rollback(True, using="default")

    assert not Incident.objects.filter(agent_id=world.agent.id).exists()


def test_stop_and_verdicts_at_once_share_one_incident(committed: None) -> None:
    with environments.use(Environment.LIVE):
        agent = make_certified_agent(make_tenant())
        earlier = [make_high_event(agent, received_at=now() - timedelta(hours=2)).id for _ in range(2)]

    verdicts = [partial(judge, event_id) for event_id in earlier]
    all_at_once([*verdicts, partial(stop, agent)])

    with environments.use(Environment.LIVE):
        assert incident_of(agent).state == "contained"
        assert set(kinds(incident_of(agent))) >= {"opened", "joined"}
