"""Policies that a process keeps for a moment."""

from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_blueprint
from compliance.tests.client import ApiClient
from gateway.access.tests.factories import ONE, ask, make_policy
from gateway.tests.factories import make_permitted_agent
from tenancy.models import Tenant

pytestmark = pytest.mark.usefixtures("committed")


def test_change_counts_at_once_in_the_same_process(asker: ApiClient, tenant: Tenant, agent: Agent) -> None:
    before = asker.post(ONE, ask(agent)).json()["context"]["outcome"]
    make_policy(tenant, always_ask=["read"])
    after = asker.post(ONE, ask(agent)).json()["context"]["outcome"]

    assert (before, after) == ("allow", "ask")


def outcome(asker: ApiClient, body: Any) -> str:
    found: str = asker.post(ONE, body).json()["context"]["outcome"]
    return found


def test_the_blueprints_policy_counts_between_the_agents_and_the_tenants(
    asker: ApiClient, agent: Agent, tenant: Tenant
) -> None:
    always = {"ask_from": "never", "always_ask": ["read"], "ttl_seconds": 60}
    blueprint = make_blueprint(tenant, ask_policy=always)
    plain = make_blueprint(tenant)
    kind, own, bare = (
        make_permitted_agent(tenant, blueprint_id=one.id) for one in (blueprint, blueprint, plain)
    )
    make_policy(tenant, f"agent:{own.id}")
    make_policy(tenant, always_ask=["pay"])

    reading = [outcome(asker, ask(one)) for one in (kind, own, bare, agent)]
    assert reading == ["ask", "allow", "allow", "allow"]
    assert [outcome(asker, ask(one, "pay")) for one in (kind, own, bare)] == ["allow", "allow", "ask"]
