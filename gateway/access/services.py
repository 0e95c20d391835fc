"""Set and remove approval policies; each change is audited."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import Conflict, NotFound
from gateway.deciding import known_policies
from gateway.models import AskPolicy, GatewayRoute
from tenancy.models import Tenant

MOST_POLICIES: Final = 500
FIELDS: Final = ("ask_from", "always_ask", "ttl_seconds")
TENANT, AGENT, ROUTE = "tenant", "agent", "route"


class AskPolicyNotFound(NotFound):
    message = "Approval policy not found"


class TooManyAskPolicies(Conflict):
    message = "The tenant has as many approval policies as it can have"


def find(*, tenant_id: UUID, applies_to: str) -> AskPolicy:
    """The policy of what `applies_to` names. Raises: AskPolicyNotFound, AgentNotFound, RouteNotFound."""
    agent_id, route_id = _named(tenant_id, applies_to)
    found = AskPolicy.objects.for_tenant(tenant_id).filter(agent_id=agent_id, route_id=route_id).first()
    if found is None:
        raise AskPolicyNotFound()
    return found


def put(
    *, tenant_id: UUID, applies_to: str, fields: Mapping[str, Any], actor: Actor, now: datetime
) -> AskPolicy:
    """Set the policy of the tenant (`tenant`), an agent (`agent:<id>`) or a gateway route (`route:<id>`).

    Raises: AskPolicyNotFound for another form, AgentNotFound, RouteNotFound, TooManyAskPolicies.
    """
    with environments.atomic():
        # Policies of one tenant are set one after the other, so that the limit holds.
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        agent_id, route_id = _named(tenant_id, applies_to)
        own = AskPolicy.objects.for_tenant(tenant_id)
        policy = own.filter(agent_id=agent_id, route_id=route_id).first()
        before = None if policy is None else {name: getattr(policy, name) for name in FIELDS}
        if policy is None:
            if own.count() >= MOST_POLICIES:
                raise TooManyAskPolicies()
            policy = AskPolicy(tenant_id=tenant_id, agent_id=agent_id, route_id=route_id, created_at=now)
        for name in FIELDS:
            setattr(policy, name, fields[name])
        policy.updated_at = now
        policy.save()
        after = {name: getattr(policy, name) for name in FIELDS}
        _record(policy, AuditAction.ASK_POLICY_SET, "set", actor, now, before=before, after=after)
        known_policies.forget(tenant_id)
    return policy


def remove(*, tenant_id: UUID, applies_to: str, actor: Actor, now: datetime) -> None:
    """Remove the policy, so that a less specific one counts. Raises: as `find`."""
    with environments.atomic():
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        policy = find(tenant_id=tenant_id, applies_to=applies_to)
        _record(policy, AuditAction.ASK_POLICY_REMOVED, "removed", actor, now)
        policy.delete()
        known_policies.forget(tenant_id)


def _named(tenant_id: UUID, applies_to: str) -> tuple[UUID | None, UUID | None]:
    """The agent and the route that a policy is of. Raises: as `find`."""
    kind, _, name = applies_to.partition(":")
    if kind == AGENT:
        return Agent.objects.for_tenant(tenant_id).find(name).id, None
    if kind == ROUTE:
        return None, GatewayRoute.objects.for_tenant(tenant_id).find(name).id
    if applies_to != TENANT:
        raise AskPolicyNotFound()
    return None, None


def _record(
    policy: AskPolicy, action: AuditAction, verb: str, actor: Actor, now: datetime, **metadata: Any
) -> None:
    auditlog.record(
        tenant_id=policy.tenant_id,
        action=action,
        affected_id=policy.agent_id or policy.route_id or policy.tenant_id,
        description=f"Approval policy for {policy.applies_to} {verb}",
        metadata={"applies_to": policy.applies_to, **metadata},
        actor=actor,
        now=now,
    )
