"""Register, edit, activate, suspend, halt, reinstate and retire agents."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.errors import AgentAlreadySuspended, AgentNotSuspended, AgentRetired, StopNotUndone
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.json_values import same_json
from compliance.stores import sql
from webhooks.publishing import publish
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
    alarm_budget: float | None = None


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
    """Set fields of the profile, mode or alarm budget by name; certificates already issued stay as signed.

    A change of the mode is audited by itself, with what stood before and the `reason`, if any. Returns the
    agent, and the changed fields that its certificate states until it is renewed. Raises `AgentNotFound`,
    `AgentRetired`.
    """
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        _refuse_retired(agent)
        changed = sorted(name for name in changes if not same_json(getattr(agent, name), changes[name]))
        before, mode, budget = agent.certified_profile(), agent.enforcement, agent.alarm_budget
        for name in changed:
            setattr(agent, name, changes[name])
        needed: list[str] = []
        if agent.status != AgentStatus.PENDING:  # a pending agent will be certified as it is
            after = agent.certified_profile()
            needed = sorted(name for name in after if after[name] != before[name])
        if changed:
            agent.updated_at = now
            agent.save(update_fields=[*changed, "updated_at"])
        if profile := [name for name in changed if name != "enforcement"]:
            said = f"Agent {agent.name} updated: {', '.join(profile)}"
            fields: dict[str, Any] = {"changed": profile, "renewal_needed_for": needed}
            if "alarm_budget" in profile:
                fields |= {"alarm_budget": {"before": budget, "after": agent.alarm_budget}, "reason": reason}
            _record(agent, AuditAction.AGENT_UPDATED, actor, now, said, **fields)
        if "enforcement" in changed:
            modes = {"before": mode, "after": agent.enforcement}
            said = " to ".join(one or "as its tenant" for one in modes.values())
            said = f"Enforcement of agent {agent.name}: {said}"
            _record(agent, AuditAction.AGENT_ENFORCEMENT_CHANGED, actor, now, said, **modes, reason=reason)
    return agent, needed


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


def halt(*, agent: Agent, strikes: int, reason: str, actor: Actor, now: datetime) -> None:
    """Suspend an agent that breached the risk threshold by so many strikes, and publish `agent.halted`.

    The caller holds its row lock. Does nothing to a suspended or retired agent.
    """
    if agent.status not in (AgentStatus.RETIRED, AgentStatus.SUSPENDED):
        agent.stopped_by_strikes = strikes
        sql.update(agent, "stopped_by_strikes")
        suspend(agent=agent, reason=reason, actor=actor, now=now)
        _publish(agent, EventName.AGENT_HALTED, now, reason=reason, status=agent.status)


def reinstate(
    *, agent: Agent, is_certified: bool, may_undo_stop: bool, reason: str, actor: Actor, now: datetime
) -> None:
    """End a suspension: an agent with a valid certificate becomes active, any other pending.

    Strikes are cleared only where they had stopped it. The caller holds its row lock. Raises `AgentRetired`,
    `AgentNotSuspended`, `StopNotUndone` for a stop by the service unless `may_undo_stop`.
    """
    _refuse_retired(agent)
    if agent.status != AgentStatus.SUSPENDED:
        raise AgentNotSuspended()
    cleared = agent.stopped_by_strikes
    if cleared is not None:
        if not may_undo_stop:
            raise StopNotUndone()
        agent.reinstated_at, agent.stopped_by_strikes = now, None
    status = AgentStatus.ACTIVE if is_certified else AgentStatus.PENDING
    _move(agent, status, reason, now, "reinstated_at", "stopped_by_strikes")
    description = f"Agent {agent.name} reinstated: {reason}"
    if cleared:
        description += f" (strikes cleared: {cleared})"
    fields = {"reason": reason, "strikes_cleared": cleared or 0}
    _record(agent, AuditAction.AGENT_REINSTATED, actor, now, description, **fields)


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
    publish(tenant_id=agent.tenant_id, name=event, data={"agent_id": str(agent.id), **data}, now=now)
