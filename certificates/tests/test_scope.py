"""The scope that counts, and what of a profile only counts once it is certified."""

from typing import Any

import pytest

from agents.serializers import UpdateAgentSerializer
from agents.tests.factories import make_agent
from certificates.issuing.issuance import certified_agent
from certificates.models import Certificate, certified_actions
from certificates.tests.factories import make_certificate, make_expired_certificate, make_revoked_certificate
from tenancy.models import Tenant

CHANGES: dict[str, Any] = {
    "name": "new",
    "model": "new",
    "model_hash": "new",
    "version": "new",
    "description": "new",
    "inbox_address": "new@example.com",
    "financial_scope": {"max_single_trade_usd": 1},
    "metadata": {"permitted_actions": ["new"]},
    "enforcement": "observe",
    "alarm_budget": 0.002,
    "validity_days": 30,
    "owner": "new@example.com",
    "backup_owner": "new@example.com",
    "agent_card": {"url": "https://agent.example"},
}


@pytest.mark.parametrize("scope", [None, [], ["read"]])
def test_before_the_first_certificate_the_profile_counts(tenant: Tenant, scope: list[str] | None) -> None:
    agent = make_agent(tenant, metadata={"permitted_actions": scope})

    assert certified_actions(agent, Certificate.objects.latest_of(agent)) == scope


@pytest.mark.parametrize("scope", [None, [], ["read"]])
def test_then_the_certificate_counts(tenant: Tenant, scope: list[str] | None) -> None:
    agent = make_agent(tenant, metadata={"permitted_actions": scope})
    make_certificate(agent)
    agent.metadata = {"permitted_actions": ["withdraw"]}

    assert certified_actions(agent, Certificate.objects.latest_of(agent)) == scope


@pytest.mark.parametrize("make", [make_revoked_certificate, make_expired_certificate])
def test_the_end_of_a_certificate_lifts_no_limit(tenant: Tenant, make: Any) -> None:
    certificate = make(tenant)
    certificate.claims["permitted_actions"] = ["read"]

    assert certified_actions(certificate.agent, certificate) == ["read"]


@pytest.mark.parametrize("name", UpdateAgentSerializer().fields)
def test_a_profile_knows_what_a_certificate_states_of_it(tenant: Tenant, name: str) -> None:
    agent = make_agent(tenant)
    certified, stated = certified_agent(agent), agent.certified_profile()

    setattr(agent, f"{name}_email" if name.endswith("owner") else name, CHANGES[name])

    assert (agent.certified_profile() != stated) == (certified_agent(agent) != certified)
