"""Register, edit, activate, suspend, halt, reinstate and retire agents."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.errors import AgentAlreadySuspended, AgentNotSuspended, AgentRetired
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.json_values import same_json
from compliance.stores import sql
from webhooks import services as webhooks
from webhooks.vocabulary import EventName


@dataclass(frozen=True)
class AgentRegistration:
    """Fields a tenant states of a new agent."""

    name: str
    model_hash: str
    model: str | None = None
    version: str | None = None
    description: str | None = None
    inbox_address: str | None = None
    metadata: dict[str, Any] | None = None
    financial_scope: dict[str, Any] | None = None
    agent_card: dict[str, Any] | None = None
    enforcement: str | None = None


def register(*, tenant_id: UUID, registration: AgentRegistration, actor: Actor, now: datetime) -> Agent:
    """Create a pending agent; audits it and publishes `agent.created`."""
    with environments.atomic():
        agent = Agent(
            tenant_id=tenant_id, **vars(registration), status_changed_at=now, created_at=now, updated_at=now
        )
        with sql.pipelined():
            sql.insert(agent)
            own = {"enforcement": agent.enforcement} if agent.enforcement else {}
            _record(agent, AuditAction.AGENT_CREATED, actor, now, f"Agent {agent.name} registered", **own)
            _publish(agent, EventName.AGENT_CREATED, now, name=agent.name, status=agent.status)
    return agent


def update(
    *,
    tenant_id: UUID,
    agent_id: Any,
    changes: dict[str, Any],
    reason: str = "",
    actor: Actor,
    now: datetime,
) -> tuple[Agent, list[str]]:
    """Set fields of the profile, or the mode, by name; certificates already issued stay as signed.

    A change of the mode is audited by itself, with what stood before and the `reason`, if any. Returns the
    agent, and the changed fields that its certificate states until it is renewed. Raises `AgentNotFound`,
    `AgentRetired`.
    """
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        _refuse_retired(agent)
        changed = sorted(name for name in changes if not same_json(getattr(agent, name), changes[name]))
        before, mode = agent.certified_profile(), agent.enforcement
        for name in changed:
            setattr(agent, name, changes[name])
        needed = _renewal_needed_for(agent, before)
        if changed:
            agent.updated_at = now
            agent.save(update_fields=[*changed, "updated_at"])
            _record_changes(agent, changed, needed, actor, now)
        if "enforcement" in changed:
            _record_mode(agent, mode, reason, actor, now)
    return agent, needed


def _renewal_needed_for(agent: Agent, before: dict[str, Any]) -> list[str]:
    """Return the changed fields that a certificate states; none for a pending agent, certified as it is."""
    if agent.status == AgentStatus.PENDING:
        return []
    return sorted(name for name, value in agent.certified_profile().items() if value != before[name])


def activate(*, agent: Agent, actor: Actor, now: datetime) -> None:
    """Make a pending agent active; the caller issues its certificate and holds its row lock."""
    if agent.status == AgentStatus.PENDING:
        _move(agent, AgentStatus.ACTIVE, "certified", now)
        _record(agent, AuditAction.AGENT_ACTIVATED, actor, now, f"Agent {agent.name} activated")


def suspend(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Suspend an agent; the caller puts its certificate on hold and holds the agent's row lock.

    Raises `AgentRetired`, `AgentAlreadySuspended`.
    """
    _refuse_retired(agent)
    if agent.status == AgentStatus.SUSPENDED:
        raise AgentAlreadySuspended()
    _move(agent, AgentStatus.SUSPENDED, reason, now)
    _record_reason(agent, AuditAction.AGENT_SUSPENDED, reason, actor, now)
    _publish(agent, EventName.AGENT_SUSPENDED, now, reason=reason, status=agent.status)


def halt(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Suspend an agent that breached the risk threshold, and publish `agent.halted`.

    The caller holds its row lock. Does nothing to a suspended or retired agent.
    """
    if agent.status not in (AgentStatus.RETIRED, AgentStatus.SUSPENDED):
        suspend(agent=agent, reason=reason, actor=actor, now=now)
        _publish(agent, EventName.AGENT_HALTED, now, reason=reason, status=agent.status)


def reinstate(*, agent: Agent, is_certified: bool, reason: str, actor: Actor, now: datetime) -> None:
    """End a suspension: an agent with a valid certificate becomes active, any other pending.

    The caller holds its row lock. Raises `AgentRetired`, `AgentNotSuspended`.
    """
    _refuse_retired(agent)
    if agent.status != AgentStatus.SUSPENDED:
        raise AgentNotSuspended()
    agent.reinstated_at = now
    _move(agent, AgentStatus.ACTIVE if is_certified else AgentStatus.PENDING, reason, now, "reinstated_at")
    _record_reason(agent, AuditAction.AGENT_REINSTATED, reason, actor, now)


def retire(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Retire an agent for good; the caller revokes its certificate and holds the agent's row lock.

    Raises `AgentRetired`.
    """
    _refuse_retired(agent)
    _move(agent, AgentStatus.RETIRED, reason, now)
    _record_reason(agent, AuditAction.AGENT_RETIRED, reason, actor, now)


def _refuse_retired(agent: Agent) -> None:
    if agent.status == AgentStatus.RETIRED:
        raise AgentRetired()


def _move(agent: Agent, status: AgentStatus, reason: str, now: datetime, *also: str) -> None:
    agent.status, agent.status_reason = status, reason
    agent.status_changed_at = agent.updated_at = now
    sql.update(agent, "status", "status_reason", "status_changed_at", "updated_at", *also)


def _record_reason(agent: Agent, action: AuditAction, reason: str, actor: Actor, now: datetime) -> None:
    description = f"Agent {agent.name} {action.value.removeprefix('agent.')}: {reason}"
    _record(agent, action, actor, now, description, reason=reason)


def _record_changes(agent: Agent, changed: list[str], needed: list[str], actor: Actor, now: datetime) -> None:
    """Record an edit of the profile, to which the mode does not belong."""
    profile = [name for name in changed if name != "enforcement"]
    if profile:
        description = f"Agent {agent.name} updated: {', '.join(profile)}"
        fields = {"changed": profile, "renewal_needed_for": needed}
        _record(agent, AuditAction.AGENT_UPDATED, actor, now, description, **fields)


def _record_mode(agent: Agent, before: str | None, reason: str, actor: Actor, now: datetime) -> None:
    """Record a change of the agent's own mode; None is the tenant's."""
    said = " to ".join(mode or "as its tenant" for mode in (before, agent.enforcement))
    description = f"Enforcement of agent {agent.name}: {said}"
    fields = {"before": before, "after": agent.enforcement, "reason": reason}
    _record(agent, AuditAction.AGENT_ENFORCEMENT_CHANGED, actor, now, description, **fields)


def _record(
    agent: Agent, action: AuditAction, actor: Actor, now: datetime, description: str, **metadata: Any
) -> None:
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=action,
        affected_id=agent.id,
        description=description,
        metadata={"agent_id": str(agent.id), "status": agent.status, **metadata},
        actor=actor,
        now=now,
    )


def _publish(agent: Agent, event: EventName, now: datetime, /, **data: Any) -> None:
    webhooks.publish(tenant_id=agent.tenant_id, name=event, data={"agent_id": str(agent.id), **data}, now=now)
