"""An officer's verdict on an event: recorded for good, audited, and open to a change of mind."""

from datetime import datetime
from typing import Any
from uuid import UUID

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance import environments
from events.models import BehaviorEvent, EventReview, ReviewVerdict


def review(
    *, tenant_id: UUID, event_id: Any, verdict: ReviewVerdict, note: str | None, actor: Actor, now: datetime
) -> tuple[EventReview, bool]:
    """Record a verdict; the review that counts now, and whether it is a new one.

    Who repeats the present verdict, with its note or none, adds nothing. Reviews of one agent's events take
    turns under its row lock. Raises `EventNotFound`.
    """
    with environments.atomic():
        event = BehaviorEvent.objects.for_tenant(tenant_id).find(event_id)
        agent = Agent.objects.for_tenant(tenant_id).locked().find(event.agent_id)
        before = EventReview.objects.of_event(event.id).first()
        if before is not None and before.verdict == verdict and note in (None, before.note):
            return before, False
        made = EventReview.objects.create(
            tenant_id=tenant_id,
            agent=agent,
            event_id=event.id,
            number=before.number + 1 if before else 1,
            verdict=verdict,
            note=note,
            actor_type=actor.type,
            actor_id=actor.id[:255],
            reviewed_at=now,
        )
        _record(made, event, before, actor)
    return made, True


def _record(made: EventReview, event: BehaviorEvent, before: EventReview | None, actor: Actor) -> None:
    auditlog.record(
        tenant_id=made.tenant_id,
        action=AuditAction.EVENT_REVIEWED,
        affected_id=event.id,
        description=f"{event.action_type} of agent {made.agent.name} {made.verdict}",
        metadata={
            "agent_id": str(event.agent_id),
            "event_id": str(event.id),
            "risk_score": event.risk_score,
            "risk_band": event.risk_band,
            "verdict": made.verdict,
            "verdict_before": before.verdict if before else None,
            "note": made.note,
        },
        actor=actor,
        now=made.reviewed_at,
    )
