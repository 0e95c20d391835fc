"""The life of an agent: register, edit, activate, suspend, halt, reinstate, retire."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.errors import AgentAlreadySuspended, AgentNotSuspended, AgentRetired
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance import environments, sql
from compliance.json_values import same_json
from webhooks import services as webhooks
from webhooks.vocabulary import EventName


@dataclass(frozen=True)
class Registration:
    """What a tenant says of a new agent."""

    name: str
    model_hash: str
    model: str | None = None
    version: str | None = None
    description: str | None = None
    inbox_address: str | None = None
    metadata: dict[str, Any] | None = None
    financial_scope: dict[str, Any] | None = None


@dataclass(frozen=True)
class Changes:
    """The fields of an edit, by name."""

    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Updated:
    """An edited agent, and what was changed that its certificate states: that counts once it is renewed."""

    agent: Agent
    renewal_needed_for: list[str] = field(default_factory=list)


def register(*, tenant_id: UUID, registration: Registration, actor: Actor, now: datetime) -> Agent:
    """A new agent, pending; audited, and announced as `agent.created`."""
    with environments.atomic():
        agent = Agent(
            tenant_id=tenant_id,
            **vars(registration),
            status_changed_at=now,
            created_at=now,
            updated_at=now,
        )
        with sql.pipelined():
            sql.insert(agent)
            _record(agent, AuditAction.AGENT_CREATED, actor, now, f"Agent {agent.name} registered")
            _publish(agent, EventName.AGENT_CREATED, now, name=agent.name, status=agent.status)
    return agent


def update(*, tenant_id: UUID, agent_id: Any, changes: Changes, actor: Actor, now: datetime) -> Updated:
    """Edit the profile; certificates already issued stay as signed. `AgentNotFound`, `AgentRetired`."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        if agent.status == AgentStatus.RETIRED:
            raise AgentRetired()
        changed = sorted(
            name for name, value in changes.fields.items() if not same_json(getattr(agent, name), value)
        )
        before = agent.certified_profile()
        for name in changed:
            setattr(agent, name, changes.fields[name])
        needed = _renewal_needed_for(agent, before)
        if changed:
            agent.updated_at = now
            agent.save(update_fields=[*changed, "updated_at"])
            description = f"Agent {agent.name} updated: {', '.join(changed)}"
            _record(
                agent,
                AuditAction.AGENT_UPDATED,
                actor,
                now,
                description,
                changed=changed,
                renewal_needed_for=needed,
            )
    return Updated(agent, needed)


def _renewal_needed_for(agent: Agent, before: dict[str, Any]) -> list[str]:
    """What this request changed of what a certificate states; a pending agent is certified as it is."""
    if agent.status == AgentStatus.PENDING:
        return []
    return sorted(name for name, value in agent.certified_profile().items() if value != before[name])


def activate(*, agent: Agent, actor: Actor, now: datetime) -> None:
    """Make a pending agent active; called under its row lock when its certificate is issued."""
    if agent.status == AgentStatus.PENDING:
        _move(agent, AgentStatus.ACTIVE, "certified", now)
        _record(agent, AuditAction.AGENT_ACTIVATED, actor, now, f"Agent {agent.name} activated")


def suspend(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Stop an agent pending review; called under the row lock by the room that puts its certificate on hold.

    Raises `AgentRetired` and `AgentAlreadySuspended`.
    """
    if agent.status == AgentStatus.RETIRED:
        raise AgentRetired()
    if agent.status == AgentStatus.SUSPENDED:
        raise AgentAlreadySuspended()
    _suspend(agent, reason, actor, now)


def halt(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Suspend and announce `agent.halted`; called under the row lock when the risk threshold is breached."""
    if agent.status in (AgentStatus.RETIRED, AgentStatus.SUSPENDED):
        return
    _suspend(agent, reason, actor, now)
    _publish(agent, EventName.AGENT_HALTED, now, reason=reason, status=agent.status)


def reinstate(*, agent: Agent, is_certified: bool, reason: str, actor: Actor, now: datetime) -> None:
    """End a suspension: the agent is active if its certificate counts again, else pending.

    Called under the row lock by the room that knows; raises `AgentRetired` and `AgentNotSuspended`.
    """
    if agent.status == AgentStatus.RETIRED:
        raise AgentRetired()
    if agent.status != AgentStatus.SUSPENDED:
        raise AgentNotSuspended()
    agent.reinstated_at = now
    _move(agent, AgentStatus.ACTIVE if is_certified else AgentStatus.PENDING, reason, now, "reinstated_at")
    description = f"Agent {agent.name} reinstated: {reason}"
    _record(agent, AuditAction.AGENT_REINSTATED, actor, now, description, reason=reason)


def retire(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Retire for good; called under the row lock by the room that also revokes; `AgentRetired`."""
    if agent.status == AgentStatus.RETIRED:
        raise AgentRetired()
    _move(agent, AgentStatus.RETIRED, reason, now)
    description = f"Agent {agent.name} retired: {reason}"
    _record(agent, AuditAction.AGENT_RETIRED, actor, now, description, reason=reason)


def _suspend(agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    _move(agent, AgentStatus.SUSPENDED, reason, now)
    description = f"Agent {agent.name} suspended: {reason}"
    _record(agent, AuditAction.AGENT_SUSPENDED, actor, now, description, reason=reason)
    _publish(agent, EventName.AGENT_SUSPENDED, now, reason=reason, status=agent.status)


def _move(agent: Agent, status: AgentStatus, reason: str, now: datetime, *also: str) -> None:
    agent.status, agent.status_reason = status, reason
    agent.status_changed_at = agent.updated_at = now
    sql.update(agent, "status", "status_reason", "status_changed_at", "updated_at", *also)


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
