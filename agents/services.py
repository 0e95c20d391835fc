"""Register, edit, activate, suspend, halt, reinstate and retire agents."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from agents import mailing
from agents.blueprints.inheritance import INHERITED, keep_within
from agents.blueprints.services import blueprint_entry
from agents.errors import AgentAlreadySuspended, AgentNotSuspended, AgentRetired, StopNotUndone
from agents.models import OWNER_ROLES, Agent, AgentStatus, Blueprint, ProfileRow
from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.errors import Invalid
from compliance.core.json_values import same_json, written
from compliance.stores import sql
from compliance.stores.rows import TenantRows
from webhooks.publishing import publish, publish_all
from webhooks.vocabulary import EventName


def register(*, tenant_id: UUID, fields: dict[str, Any], actor: Actor, now: datetime) -> Agent:
    """Create a pending agent of fields by name; audits it and publishes `agent.created`.

    Raises: BlueprintNotFound, WiderThanBlueprint, and Invalid where nothing states the model hash.
    """
    with environments.atomic():
        agent = Agent(tenant_id=tenant_id, **fields, status_changed_at=now, created_at=now, updated_at=now)
        if agent.blueprint_id is not None:
            agent.model_hash = agent.model_hash or None  # type: ignore[assignment]  # until it is inherited
            keep_within(agent, Blueprint.objects.for_tenant(tenant_id).find(agent.blueprint_id), INHERITED)
        if not agent.model_hash:
            raise Invalid("model_hash: This field is required, as the blueprint states none.")
        with sql.pipelined():
            sql.insert(agent)
            own: dict[str, Any] = {"enforcement": agent.enforcement} if agent.enforcement else {}
            own |= {role: person for role in OWNER_ROLES if (person := getattr(agent, role))}
            own |= {"blueprint_id": str(agent.blueprint_id)} if agent.blueprint_id else {}
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
    `AgentRetired`, `WiderThanBlueprint`.
    """
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        _refuse_retired(agent)
        columns = [field.attname for field in Agent._meta.concrete_fields]
        before = {name: getattr(agent, name) for name in (*columns, *INHERITED)}
        for name, value in changes.items():
            setattr(agent, name, value)
        if agent.blueprint_id is not None:
            touched = [name for name in INHERITED if not same_json(getattr(agent, name), before[name])]
            keep_within(agent, Blueprint.objects.for_tenant(tenant_id).find(agent.blueprint_id), touched)
        given = [name for name in columns if getattr(agent, name) is not before[name]]
        changed = sorted(name for name in given if not same_json(getattr(agent, name), before[name]))
        needed: list[str] = []
        if agent.status != AgentStatus.PENDING:  # a pending agent will be certified as it is
            needed = sorted(
                name for name, value in agent.certified_profile().items() if value != before[name]
            )
        if changed:
            agent.updated_at = now
            agent.save(update_fields=[*changed, "updated_at"])
        if profile := [name for name in changed if name != "enforcement"]:
            said = f"Agent {agent.name} updated: {', '.join(profile)}"
            fields: dict[str, Any] = {"changed": profile, "renewal_needed_for": needed}
            if "alarm_budget" in profile:
                budgets = {"before": before["alarm_budget"], "after": agent.alarm_budget}
                fields |= {"alarm_budget": budgets, "reason": reason}
            fields |= _owners_changed(agent, before)
            _record(agent, AuditAction.AGENT_UPDATED, actor, now, said, **fields)
        if "enforcement" in changed:
            modes = {"before": before["enforcement"], "after": agent.enforcement}
            said = " to ".join(one or "as its tenant" for one in modes.values())
            said = f"Enforcement of agent {agent.name}: {said}"
            _record(agent, AuditAction.AGENT_ENFORCEMENT_CHANGED, actor, now, said, **modes, reason=reason)
    return agent, needed


def replace_owner(
    *, tenant_id: UUID, email: str, name: str, new_email: str, actor: Actor, now: datetime
) -> int:
    """Put another person in the place of the one with this address, in any case, who answers for agents.

    Owners and backup owners of all the tenant's agents, retired ones too, and of its blueprints are replaced,
    each audited. Returns how many agents changed.
    """
    person, entries = {"name": name, "email": new_email}, []
    with environments.atomic():
        agents = _replaced(Agent.objects.for_tenant(tenant_id), email, person, now)
        for agent, changes in agents:
            fields = {"changed": sorted(changes), "renewal_needed_for": [], **changes}
            said = f"Agent {agent.name} updated: {', '.join(changes)} replaced"
            entries.append(_entry(agent, AuditAction.AGENT_UPDATED, actor, now, said, **fields))
        # Blueprints are locked after agents, as renewals do.
        for blueprint, changes in _replaced(Blueprint.objects.for_tenant(tenant_id), email, person, now):
            entries.append(blueprint_entry(blueprint, AuditAction.BLUEPRINT_UPDATED, actor, now, **changes))
        auditlog.record_all(entries)
    return len(agents)


def _replaced(
    rows: TenantRows[Any], email: str, person: dict[str, str], now: datetime
) -> list[tuple[Any, dict[str, Any]]]:
    """Put a person in the place of another; return the rows that changed, each with its changes."""
    found, theirs = [], Q(owner_email__iexact=email) | Q(backup_owner_email__iexact=email)
    for row in rows.filter(theirs).order_by("id").locked():
        before = {role: getattr(row, role) for role in OWNER_ROLES}
        for role, known in before.items():
            if known and known["email"].casefold() == email.casefold():
                setattr(row, role, person)
        row.updated_at = now
        if changes := _owners_changed(row, before):
            found.append((row, changes))
    columns = [f"{role}_{part}" for role in OWNER_ROLES for part in person]
    rows.bulk_update([row for row, _ in found], [*columns, "updated_at"], batch_size=500)
    return found


def _owners_changed(row: ProfileRow, before: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of an audit entry about new owners, which can be erased; {} if none is new."""
    return {
        role: {"before": before[role], "after": after}
        for role in OWNER_ROLES
        if (after := getattr(row, role)) != before[role]
    }


def activate(*, agent: Agent, actor: Actor, now: datetime) -> None:
    """Make a pending agent active; the caller issues its certificate and holds its row lock."""
    if agent.status == AgentStatus.PENDING:
        _move([agent], AgentStatus.ACTIVE, "certified", now)
        _record(agent, AuditAction.AGENT_ACTIVATED, actor, now, f"Agent {agent.name} activated")


def fall_dormant(
    *, agent: Agent, last_event_at: datetime | None, days: int, actor: Actor, now: datetime
) -> None:
    """Mark and announce an active agent without an event for so many days; the caller holds its row lock."""
    agent.dormant_at = now
    sql.update(agent, "dormant_at")
    said = f"Agent {agent.name} is dormant: no event for {days} days"
    told = {"last_event_at": written(last_event_at), "days": days}
    _record(agent, AuditAction.AGENT_DORMANT, actor, now, said, **told)
    _publish(agent, EventName.AGENT_DORMANT, now, name=agent.name, **told)
    text = f"It is active and has not reported for {days} days. Does it still need what it may do?"
    mailing.tell_owners(agents=[agent], what="dormant", text=text, now=now)


def suspend(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Suspend an agent; the caller puts its certificate on hold and holds the agent's row lock.

    Raises `AgentRetired`, `AgentAlreadySuspended`.
    """
    _refuse_retired(agent)
    if agent.status == AgentStatus.SUSPENDED:
        raise AgentAlreadySuspended()
    suspend_all(agents=[agent], reason=reason, now=now)
    announce_suspended(agents=[agent], reason=reason, actor=actor, now=now)


def uphold(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Suspend a suspended agent for a reason of its own, so that the release of a stop leaves it.

    The caller holds its row lock. One that the service stopped is left as it is: no release frees it.
    """
    if agent.stopped_by_strikes is None:
        suspend_all(agents=[agent], reason=reason, now=now)
        auditlog.record_all([_reason_entry(agent, AuditAction.AGENT_SUSPENDED, reason, actor, now)])


def suspend_all(*, agents: Sequence[Agent], reason: str, now: datetime) -> None:
    """As `suspend`, for locked agents of one tenant that are neither suspended nor retired.

    The caller has it announced.
    """
    _move(agents, AgentStatus.SUSPENDED, reason, now)


def announce_suspended(*, agents: Sequence[Agent], reason: str, actor: Actor, now: datetime) -> None:
    """Audit and publish that agents of one tenant were suspended."""
    action = AuditAction.AGENT_SUSPENDED
    if not agents:
        return
    auditlog.record_all([_reason_entry(agent, action, reason, actor, now) for agent in agents])
    data = [
        {"agent_id": str(agent.id), "reason": reason, "status": agent.status, "owner": agent.owner}
        for agent in agents
    ]
    publish_all(tenant_id=agents[0].tenant_id, name=EventName.AGENT_SUSPENDED, data=data, now=now)
    text = f"Suspended, and may not act until reinstated.\n\nReason: {mailing.line(reason)}"
    mailing.tell_owners(agents=agents, what="suspended", text=text, now=now)


def halt(*, agent: Agent, strikes: int, reason: str, actor: Actor, now: datetime) -> None:
    """Suspend an agent that breached the risk threshold by so many strikes, and publish `agent.halted`.

    The caller holds its row lock. Does nothing to a suspended or retired agent.
    """
    if not agent.is_stopped:
        agent.stopped_by_strikes = strikes
        sql.update(agent, "stopped_by_strikes")
        suspend(agent=agent, reason=reason, actor=actor, now=now)
        _publish(agent, EventName.AGENT_HALTED, now, reason=reason, status=agent.status, owner=agent.owner)


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
    if cleared is not None and not may_undo_stop:
        raise StopNotUndone()
    status = AgentStatus.ACTIVE if is_certified else AgentStatus.PENDING
    undone = {} if cleared is None else {"reinstated_at": now, "stopped_by_strikes": None}
    _move([agent], status, reason, now, **undone)
    auditlog.record_all([_reinstated(agent, reason, cleared or 0, actor, now)])


def reinstate_all(
    *, agents: Sequence[Agent], certified: Collection[UUID], reason: str, actor: Actor, now: datetime
) -> None:
    """As `reinstate`, for suspended agents of one tenant that the service did not stop; locked.

    `certified` names those with a valid certificate.
    """
    for status, is_certified in ((AgentStatus.ACTIVE, True), (AgentStatus.PENDING, False)):
        _move([one for one in agents if (one.id in certified) is is_certified], status, reason, now)
    auditlog.record_all([_reinstated(agent, reason, 0, actor, now) for agent in agents])


def _reinstated(agent: Agent, reason: str, cleared: int, actor: Actor, now: datetime) -> AuditEntry:
    description = f"Agent {agent.name} reinstated: {reason}"
    if cleared:
        description += f" (strikes cleared: {cleared})"
    fields = {"reason": reason, "strikes_cleared": cleared}
    return _entry(agent, AuditAction.AGENT_REINSTATED, actor, now, description, **fields)


def retire(*, agent: Agent, reason: str, actor: Actor, now: datetime) -> None:
    """Retire an agent for good; the caller revokes its certificate and holds the agent's row lock.

    Raises `AgentRetired`.
    """
    _refuse_retired(agent)
    _move([agent], AgentStatus.RETIRED, reason, now)
    auditlog.record_all([_reason_entry(agent, AuditAction.AGENT_RETIRED, reason, actor, now)])


def _refuse_retired(agent: Agent) -> None:
    if agent.status == AgentStatus.RETIRED:
        raise AgentRetired()


def _move(agents: Sequence[Agent], status: AgentStatus, reason: str, now: datetime, **also: Any) -> None:
    changes = {"status": status, "status_reason": reason, "dormant_at": None, **also}
    changes |= dict.fromkeys(("status_changed_at", "updated_at"), now)
    for agent in agents:
        for name, value in changes.items():
            setattr(agent, name, value)
    if agents:
        own = Agent.objects.for_tenant(agents[0].tenant_id)
        own.filter(id__in=[agent.id for agent in agents]).update(**changes)


def _reason_entry(agent: Agent, action: AuditAction, reason: str, actor: Actor, now: datetime) -> AuditEntry:
    description = f"Agent {agent.name} {action.value.removeprefix('agent.')}: {reason}"
    return _entry(agent, action, actor, now, description, reason=reason)


def _record(
    agent: Agent, action: AuditAction, actor: Actor, now: datetime, description: str, **metadata: Any
) -> None:
    auditlog.record_all([_entry(agent, action, actor, now, description, **metadata)])


def _entry(
    agent: Agent, action: AuditAction, actor: Actor, now: datetime, description: str, **metadata: Any
) -> AuditEntry:
    metadata = {"agent_id": str(agent.id), "status": agent.status, **metadata}
    return auditlog.entry(
        of=agent, action=action, description=description, metadata=metadata, actor=actor, now=now
    )


def _publish(agent: Agent, event: EventName, now: datetime, /, **data: Any) -> None:
    publish(tenant_id=agent.tenant_id, name=event, data={"agent_id": str(agent.id), **data}, now=now)
