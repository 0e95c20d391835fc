"""Stop agents from the inbox, comment on them, and say who reviews an agent's events and when."""

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
from events.inbox.models import AgentQueue, CommentKind, InboxComment
from events.models import BehaviorEvent


def remark(
    *,
    tenant_id: UUID,
    agent_id: UUID,
    event_id: UUID | None,
    kind: CommentKind,
    text: str,
    case_number: str | None,
    actor: Actor,
    now: datetime,
) -> Certificate | None:
    """Keep and audit a remark on an agent, and by its `kind` suspend it or revoke its certificate.

    The remark is then the reason. `event_id` is that of the event that was open; one of another agent, or one
    that was dropped, is left out. Returns the certificate that was revoked, if any. Raises AgentNotFound,
    AgentRetired, AgentAlreadySuspended, CertificateNotFound.
    """
    reason: dict[str, Any] = {"tenant_id": tenant_id, "reason": text, "actor": actor, "now": now}
    revoked = None
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        if kind == CommentKind.SUSPENDED:
            agent = certificates.suspend_agent(agent_id=agent.id, **reason)
        elif kind == CommentKind.REVOKED:
            found = Certificate.objects.of_agent(agent.id).revocable(now).first()
            if found is None:
                raise CertificateNotFound("The agent has no certificate that could be revoked")
            revoked = certificates.revoke(certificate_id=found.id, **reason)
        if event_id and not BehaviorEvent.objects.of_agent(agent.id).filter(id=event_id).exists():
            event_id = None
        InboxComment.objects.create(
            tenant_id=tenant_id,
            agent=agent,
            event_id=event_id,
            kind=kind,
            text=text,
            case_number=case_number,
            actor_type=actor.type,
            actor_id=actor.id[:255],
            created_at=now,
        )
        told = {"event_id": str(event_id) if event_id else None, "kind": kind.value}
        told |= {"comment": text, "case_number": case_number}
        said = f"Comment on agent {agent.name}"
        _record(agent, AuditAction.INBOX_COMMENTED, said, actor, now, **told)
    return revoked


def assign(*, tenant_id: UUID, agent_id: UUID, assignee: str | None, actor: Actor, now: datetime) -> None:
    """Give the review of an agent's events to a person (an actor id) or to nobody. Raises AgentNotFound."""
    with environments.atomic():
        agent, queue = _queue(tenant_id, agent_id, now)
        if queue.assignee == assignee:
            return
        before, queue.assignee, queue.updated_at = queue.assignee, assignee, now
        queue.save(update_fields=["assignee", "updated_at"])
        said = f"Events of agent {agent.name} assigned to {assignee or 'nobody'}"
        _record(agent, AuditAction.INBOX_ASSIGNED, said, actor, now, before=before, after=assignee)


def snooze(*, tenant_id: UUID, agent_id: UUID, span: timedelta | None, actor: Actor, now: datetime) -> None:
    """Leave an agent out of the inbox for `span`, or until its next high-risk event; None ends it.

    Raises AgentNotFound.
    """
    with environments.atomic():
        agent, queue = _queue(tenant_id, agent_id, now)
        if span is None and queue.snoozed_until is None:
            return
        queue.snoozed_at, queue.snoozed_until = (now, now + span) if span else (None, None)
        queue.updated_at = now
        queue.save(update_fields=["snoozed_at", "snoozed_until", "updated_at"])
        until = f"{queue.snoozed_until:%Y-%m-%dT%H:%M:%SZ}" if queue.snoozed_until else None
        said = f"Events of agent {agent.name} {f'snoozed until {until}' if until else 'no longer snoozed'}"
        _record(agent, AuditAction.INBOX_SNOOZED, said, actor, now, snoozed_until=until)


def _queue(tenant_id: UUID, agent_id: UUID, now: datetime) -> tuple[Agent, AgentQueue]:
    """Return the agent, locked, and the row of its queue, made if need be."""
    agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
    made = {"tenant_id": agent.tenant_id, "updated_at": now}
    queue, _ = AgentQueue.objects.get_or_create(agent_id=agent.id, defaults=made)
    return agent, queue


def _record(
    agent: Agent, action: AuditAction, description: str, actor: Actor, now: datetime, **metadata: Any
) -> None:
    metadata = {"agent_id": str(agent.id), **metadata}
    auditlog.record(of=agent, action=action, description=description, metadata=metadata, actor=actor, now=now)
