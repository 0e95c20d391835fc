"""What the rooms publish is what the receiver's guide promises."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from agents import services as agents
from agents.models import Agent
from agents.tests.factories import ACTOR, make_agent, make_suspended_agent
from certificates import services as certificates
from certificates.tests.factories import make_certificate, make_revoked_certificate
from compliance.core import environments
from compliance.core.clock import now
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant
from webhooks.models import Message
from webhooks.openapi import EXAMPLE_DATA
from webhooks.tests.factories import make_webhook
from webhooks.vocabulary import EventName


def halt_agent(tenant: Tenant) -> None:
    agent = make_agent(tenant)
    with environments.atomic():
        locked = Agent.objects.for_tenant(tenant.id).locked().find(agent.id)
        agents.halt(agent=locked, strikes=3, reason="threshold", actor=ACTOR, now=now())


def expire_certificate(tenant: Tenant) -> None:
    certificate = make_certificate(make_agent(tenant))
    certificates.expire_due(now=certificate.expires_at + timedelta(seconds=1))


@pytest.mark.parametrize(
    ("event", "happen"),
    [
        ("agent.created", make_agent),
        ("agent.suspended", make_suspended_agent),
        ("agent.halted", halt_agent),
        ("certificate.issued", make_revoked_certificate),
        ("certificate.revoked", make_revoked_certificate),
        ("certificate.expired", expire_certificate),
    ],
)
def test_message_has_the_fields_that_are_promised(event: str, happen: Callable[[Tenant], object]) -> None:
    tenant = make_tenant()
    make_webhook(tenant, events=EventName.values)

    happen(tenant)

    (message,) = Message.objects.filter(tenant=tenant, event=event)
    assert set(json.loads(bytes(message.body))["data"]) == set(EXAMPLE_DATA[event])
