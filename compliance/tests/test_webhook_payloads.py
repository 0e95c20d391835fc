"""What the rooms publish is what the receiver's guide promises."""

import json
from datetime import timedelta
from typing import Any

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


def listening_tenant() -> Tenant:
    tenant = make_tenant()
    make_webhook(tenant, events=EventName.values)
    return tenant


def published(tenant: Tenant, event: str) -> dict[str, Any]:
    """`data` of the one message of that event."""
    (message,) = Message.objects.filter(tenant=tenant, event=event)
    found: dict[str, Any] = json.loads(bytes(message.body))["data"]
    return found


def test_agent_created() -> None:
    tenant = listening_tenant()
    make_agent(tenant)

    assert set(published(tenant, "agent.created")) == set(EXAMPLE_DATA["agent.created"])


def test_agent_suspended() -> None:
    tenant = listening_tenant()
    make_suspended_agent(tenant)

    assert set(published(tenant, "agent.suspended")) == set(EXAMPLE_DATA["agent.suspended"])


def test_agent_halted() -> None:
    tenant = listening_tenant()
    agent = make_agent(tenant)
    with environments.atomic():
        locked = Agent.objects.for_tenant(tenant.id).locked().find(agent.id)
        agents.halt(agent=locked, strikes=3, reason="threshold", actor=ACTOR, now=now())

    assert set(published(tenant, "agent.halted")) == set(EXAMPLE_DATA["agent.halted"])


def test_certificate_issued_and_revoked() -> None:
    tenant = listening_tenant()
    certificate = make_revoked_certificate(tenant)

    assert set(published(tenant, "certificate.issued")) == set(EXAMPLE_DATA["certificate.issued"])
    revoked = published(tenant, "certificate.revoked")
    assert set(revoked) == {"serial_number", "agent_id", "revocation_reason", "revoked_at"}
    assert revoked["serial_number"] == certificate.serial_number


def test_certificate_expired() -> None:
    tenant = listening_tenant()
    certificate = make_certificate(make_agent(tenant))
    certificates.expire_due(now=certificate.expires_at + timedelta(seconds=1))

    assert set(published(tenant, "certificate.expired")) == set(EXAMPLE_DATA["certificate.expired"])
