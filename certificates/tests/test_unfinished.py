"""Issuances that a crash left unfinished."""

from datetime import timedelta

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.issuing import issuance, key_pool
from certificates.issuing.issuance import settle
from certificates.models import Issuance, PooledKey
from certificates.pki.serials import format_serial, new_serial
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.keys.registry import backend_for
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR

LONG_AGO = timedelta(minutes=11)


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_agent(tenant)


def make_unfinished(agent: Agent, *, age: timedelta = LONG_AGO) -> Issuance:
    """The intent of a process that died before it signed."""
    key = key_pool.generate(now=now())
    return Issuance.objects.create(
        tenant_id=agent.tenant_id,
        agent=agent,
        serial_number=format_serial(new_serial(Environment.LIVE)),
        key_uri=key.uri,
        created_at=now() - age,
    )


@pytest.mark.usefixtures("authority")
def test_old_intent_fails_and_its_key_certifies(agent: Agent) -> None:
    intent = make_unfinished(agent)

    counts = [settle(now=now()) for _ in range(2)]
    certificate = issuance.issue(tenant_id=agent.tenant_id, agent_id=agent.id, actor=ACTOR, now=now())

    intent.refresh_from_db()
    assert counts == [1, 0]
    assert (intent.state, intent.error) == ("failed", "never finished")
    assert certificate.kms_key_arn == intent.key_uri
    assert certificate.serial_number != intent.serial_number


def test_recent_intent_is_left_alone(agent: Agent) -> None:
    make_unfinished(agent, age=timedelta(minutes=9))

    assert settle(now=now()) == 0


def test_intent_whose_key_is_gone_is_settled_too(agent: Agent) -> None:
    intent = make_unfinished(agent)
    backend_for(Environment.LIVE).destroy(intent.key_uri)

    assert settle(now=now()) == 1
    assert not PooledKey.objects.filter(key_uri=intent.key_uri).exists()


@pytest.mark.usefixtures("authority")
def test_finished_issuances_are_left_alone(agent: Agent) -> None:
    issuance.issue(tenant_id=agent.tenant_id, agent_id=agent.id, actor=ACTOR, now=now())

    assert settle(now=now() + timedelta(days=1)) == 0
