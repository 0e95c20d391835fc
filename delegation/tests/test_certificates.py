"""Delegation and the agent's certificate: what it lends, and when it no longer does."""

from datetime import datetime, timedelta
from typing import Any

import jwt
import pytest

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from certificates.models import Certificate
from certificates.tests.factories import (
    make_certified_agent,
)
from compliance.core.clock import now
from compliance.tests.client import ApiClient
from delegation.tests.factories import CHAIN
from tenancy.models import Tenant


def issue(client: ApiClient, agent: Agent, **body: Any) -> Any:
    return client.post(f"/v1/agents/{agent.id}/delegation", {"chain": CHAIN, **body})


def test_the_token_names_the_certificate(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)

    token = issue(client, agent).json()["data"]["token"]

    serial = Certificate.objects.get(agent=agent).serial_number
    assert jwt.decode(token, options={"verify_signature": False})["cert_serial"] == serial
    verdict = client.post("/v1/delegation/verify", {"token": token}).json()["data"]
    assert verdict["certificate_serial"] == serial
    entry = AuditEntry.objects.get(event_type="delegation.issued")
    assert entry.metadata is not None
    assert entry.metadata["certificate_serial"] == serial


def test_the_token_ends_with_the_certificate(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant)
    end = now() + timedelta(minutes=5)
    Certificate.objects.filter(agent=agent).update(expires_at=end)

    data = issue(client, agent, ttl_seconds=86_400).json()["data"]

    assert datetime.fromisoformat(data["expires_at"]) == end.replace(microsecond=0)


LIMITED = {"permitted_actions": ["read", "trade"]}


@pytest.mark.parametrize(
    "profile",
    [
        {},
        None,
        {"permitted_actions": None},
        {"permitted_actions": ["read", "trade", "withdraw"]},
        {"permitted_actions": ["withdraw"]},
        {"scopes": ["withdraw"]},
    ],
)
def test_an_edited_profile_widens_nothing_that_was_certified(
    client: ApiClient, tenant: Tenant, profile: Any
) -> None:
    agent = make_certified_agent(tenant, metadata=LIMITED)

    edited = client.patch(f"/v1/agents/{agent.id}", {"metadata": profile})

    assert edited.status_code == 200
    assert edited.json()["data"]["renewal_needed_for"] == ["permitted_actions"]
    assert issue(client, agent, scope="withdraw").status_code == 422
    assert issue(client, agent, scope="read trade").status_code == 200
    entry = AuditEntry.objects.filter(event_type="delegation.issued").get()
    assert entry.metadata is not None
    assert entry.metadata["scope_checked"] is True


def test_renewal_makes_the_edited_profile_count(client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant, metadata=LIMITED)
    client.patch(f"/v1/agents/{agent.id}", {"metadata": {"permitted_actions": ["withdraw"]}})

    client.post(f"/v1/agents/{agent.id}/renew")

    assert issue(client, agent, scope="withdraw").status_code == 200
    assert issue(client, agent, scope="read").status_code == 422


def test_an_agent_certified_without_limits_has_none_until_it_is_renewed(
    client: ApiClient, tenant: Tenant
) -> None:
    agent = make_certified_agent(tenant)
    client.patch(f"/v1/agents/{agent.id}", {"metadata": LIMITED})

    assert issue(client, agent, scope="withdraw").status_code == 200

    client.post(f"/v1/agents/{agent.id}/renew")

    assert issue(client, agent, scope="withdraw").status_code == 422


def test_before_the_first_certificate_the_profile_counts_at_once(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant, metadata=LIMITED)

    edited = client.patch(f"/v1/agents/{agent.id}", {"metadata": {"permitted_actions": ["withdraw"]}})

    assert edited.json()["data"]["renewal_needed_for"] == []
    assert issue(client, agent, scope="withdraw").status_code == 200
    assert issue(client, agent, scope="read").status_code == 422
