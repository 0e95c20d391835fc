"""Agents for tests, named by state."""

from typing import Any

from agents import services
from agents.blueprints import services as blueprints
from agents.models import Agent, AgentStatus, Blueprint
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from tenancy.models import Tenant

ACTOR = Actor.system("tests")


def make_agent(tenant: Tenant, **fields: Any) -> Agent:
    """A pending agent of the current environment."""
    given = {"name": "bot", "model_hash": "sha256:ab", **fields}
    return services.register(tenant_id=tenant.id, fields=given, actor=ACTOR, now=now())


def make_blueprint(tenant: Tenant, **fields: Any) -> Blueprint:
    """A blueprint of the current environment; `fields` are columns."""
    given = {"name": "kind", "model_hash": "sha256:ab", **fields}
    return blueprints.create(tenant_id=tenant.id, fields=given, actor=ACTOR, now=now())


def make_suspended_agent(tenant: Tenant, **fields: Any) -> Agent:
    """A suspended agent that was never certified (see certificates.tests.factories)."""
    agent = make_agent(tenant, **fields)
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant.id).locked().find(agent.id)
        services.suspend(agent=agent, reason="under review", actor=ACTOR, now=now())
    return agent


def make_retired_agent(tenant: Tenant, **fields: Any) -> Agent:
    return _with_status(make_agent(tenant, **fields), AgentStatus.RETIRED)


def make_active_agent(tenant: Tenant, **fields: Any) -> Agent:
    """An agent whose row says active, without a certificate (see certificates.tests.factories)."""
    return _with_status(make_agent(tenant, **fields), AgentStatus.ACTIVE)


def _with_status(agent: Agent, status: AgentStatus) -> Agent:
    agent.status = status
    agent.save(update_fields=["status"])
    return agent
