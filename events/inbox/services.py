"""Decide on open events, stop their agents, and say who reviews an agent's events and when."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import services as certificates
from certificates.errors import CertificateNotFound
from certificates.models import Certificate
from compliance.core import environments
from events.inbox import reviewing
from events.inbox.errors import ReviewedMeanwhile
from events.inbox.models import AgentQueue, CommentKind, InboxComment, OpenEvent
from events.models import BehaviorEvent, EventReview, ReviewVerdict


def decide(
    *,
    tenant_id: UUID,
    event_id: UUID,
    verdict: ReviewVerdict,
    note: str | None,
    case_number: str | None,
    actor: Actor,
    now: datetime,
) -> EventReview:
    """Review an event that is still open. Raises ReviewedMeanwhile, EventNotFound."""
    with environments.atomic():
        opened = OpenEvent.objects.for_tenant(tenant_id).filter(event_id=event_id)
        agent_id = opened.values_list("agent_id", flat=True).first()
        if agent_id is None:
            raise ReviewedMeanwhile()
        # Reviews lock the agent first: a rival's has closed the event by now, or waits.
        Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        if not opened.exists():
            raise ReviewedMeanwhile()
        made, _ = reviewing.review(
            tenant_id=tenant_id,
            event_id=event_id,
            verdict=verdict,
            note=note,
            case_number=case_number,
            actor=actor,
            now=now,
        )
    return made


def suspend(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    event_id: UUID | None,
    reason: str,
    case_number: str | None,
    actor: Actor,
    now: datetime,
) -> Agent:
    """Suspend an agent because of what it did. Raises AgentNotFound, AgentRetired, AgentAlreadySuspended."""
    with environments.atomic():
        agent = certificates.suspend_agent(
            tenant_id=tenant_id, agent_id=agent_id, reason=reason, actor=actor, now=now
        )
        _comment(agent, event_id, CommentKind.SUSPENDED, reason, case_number, actor, now)
    return agent


def revoke(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    event_id: UUID | None,
    reason: str,
    case_number: str | None,
    actor: Actor,
    now: datetime,
) -> Certificate:
    """Revoke an agent's certificate for good. Raises AgentNotFound, CertificateNotFound."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        found = Certificate.objects.of_agent(agent.id).revocable(now).first()
        if found is None:
            raise CertificateNotFound("The agent has no certificate that could be revoked")
        revoked = certificates.revoke(
            tenant_id=tenant_id, certificate_id=found.id, reason=reason, actor=actor, now=now
        )
        _comment(agent, event_id, CommentKind.REVOKED, reason, case_number, actor, now)
    return revoked


def comment(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    event_id: UUID | None,
    text: str,
    case_number: str | None,
    actor: Actor,
    now: datetime,
) -> InboxComment:
    """Add a remark on an agent. Raises AgentNotFound."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
        return _comment(agent, event_id, CommentKind.COMMENT, text, case_number, actor, now)


def assign(
    *, tenant_id: UUID, agent_id: UUID, assignee: str | None, actor: Actor, now: datetime
) -> AgentQueue:
    """Give the review of an agent's events to a person (an actor id) or to nobody. Raises AgentNotFound."""
    with environments.atomic():
        agent, queue = _queue(tenant_id, agent_id, now)
        if queue.assignee == assignee:
            return queue
        before, queue.assignee, queue.updated_at = queue.assignee, assignee, now
        queue.save(update_fields=["assignee", "updated_at"])
        said = f"Events of agent {agent.name} assigned to {assignee or 'nobody'}"
        changed = {"before": before, "after": assignee}
        _record(agent, AuditAction.INBOX_ASSIGNED, said, changed, actor, now)
    return queue


def snooze(
    *, tenant_id: UUID, agent_id: UUID, span: timedelta | None, actor: Actor, now: datetime
) -> AgentQueue:
    """Leave an agent out of the inbox for `span`, or until its next high-risk event; None ends it.

    Raises AgentNotFound.
    """
    with environments.atomic():
        agent, queue = _queue(tenant_id, agent_id, now)
        if span is None and queue.snoozed_until is None:
            return queue
        queue.snoozed_at, queue.snoozed_until = (None, None) if span is None else (now, now + span)
        queue.updated_at = now
        queue.save(update_fields=["snoozed_at", "snoozed_until", "updated_at"])
        until = None if queue.snoozed_until is None else f"{queue.snoozed_until:%Y-%m-%dT%H:%M:%SZ}"
        said = f"Events of agent {agent.name} {f'snoozed until {until}' if until else 'no longer snoozed'}"
        _record(agent, AuditAction.INBOX_SNOOZED, said, {"snoozed_until": until}, actor, now)
    return queue


def _queue(tenant_id: UUID, agent_id: UUID, now: datetime) -> tuple[Agent, AgentQueue]:
    """Return the agent, locked, and the row of its queue, made if need be."""
    agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
    made = {"tenant_id": agent.tenant_id, "updated_at": now}
    queue, _ = AgentQueue.objects.get_or_create(agent_id=agent.id, defaults=made)
    return agent, queue


def _comment(
    agent: Agent,
    event_id: UUID | None,
    kind: CommentKind,
    text: str,
    case_number: str | None,
    actor: Actor,
    now: datetime,
) -> InboxComment:
    if event_id is not None and not BehaviorEvent.objects.of_agent(agent.id).filter(id=event_id).exists():
        event_id = None  # another agent's, or dropped: the agent is stopped all the same
    made = InboxComment.objects.create(
        tenant_id=agent.tenant_id,
        agent=agent,
        event_id=event_id,
        kind=kind,
        text=text,
        case_number=case_number,
        actor_type=actor.type,
        actor_id=actor.id[:255],
        created_at=now,
    )
    told = {
        "event_id": None if event_id is None else str(event_id),
        "kind": kind.value,
        "comment": text,
        "case_number": case_number,
    }
    _record(agent, AuditAction.INBOX_COMMENTED, f"Comment on agent {agent.name}", told, actor, now)
    return made


def _record(
    agent: Agent,
    action: AuditAction,
    description: str,
    metadata: dict[str, Any],
    actor: Actor,
    now: datetime,
) -> None:
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=action,
        affected_id=agent.id,
        description=description,
        metadata={"agent_id": str(agent.id), **metadata},
        actor=actor,
        now=now,
    )
