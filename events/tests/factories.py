"""Events for tests, named by state."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from agents.models import Agent
from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.identifiers import new_id_at
from events import services
from events.inbox import reviewing
from events.inbox.models import OpenEvent
from events.ingest.event_input import EventInput
from events.ingest.storage import ScoredEvent
from events.models import ActionType, BehaviorEvent, EventReview, ReviewVerdict

OFFICER = Actor.person(UUID(int=7))


def make_event(
    agent: Agent,
    action_type: str = ActionType.API_CALL,
    *,
    received_at: datetime | None = None,
    **fields: Any,
) -> ScoredEvent:
    """An event ingested as the API does; `received_at` sets the receive clock."""
    event = EventInput(agent_id=str(agent.id), action_type=action_type, **fields)
    return services.ingest(tenant_id=agent.tenant_id, event=event, now=received_at or now())


def make_high_event(agent: Agent, **fields: Any) -> ScoredEvent:
    return make_event(agent, ActionType.UNAUTHORIZED_ACCESS_ATTEMPT, **fields)


def store_event(agent: Agent, score: float, at: datetime, **fields: Any) -> BehaviorEvent:
    """A row put into the table past `ingest()`, received at `at`."""
    band = "low" if score < 0.3 else "medium" if score < 0.85 else "high"
    given = {"action_type": ActionType.API_CALL, "occurred_at": at, **fields}
    return BehaviorEvent.objects.create(
        id=UUID(new_id_at(at)),
        tenant_id=agent.tenant_id,
        agent=agent,
        risk_score=score,
        risk_band=band,
        received_at=at,
        **given,
    )


def judge(
    event: Any,
    verdict: ReviewVerdict = ReviewVerdict.CONFIRMED,
    note: str | None = None,
    *,
    at: datetime | None = None,
    actor: Actor = OFFICER,
) -> EventReview:
    """Say what an officer found about an event, or about the one with this id."""
    row = BehaviorEvent.objects.get(id=getattr(event, "id", event))
    given: dict[str, Any] = {"verdict": verdict, "note": note, "actor": actor, "now": at or now()}
    return reviewing.review(tenant_id=row.tenant_id, event_id=row.id, **given)[0]


def make_open_event(
    agent: Agent, score: float = 0.9, *, minutes_ago: float = 0, **fields: Any
) -> BehaviorEvent:
    """An event that waits in the review inbox, as one that ingest stored."""
    event = store_event(agent, score, now() - timedelta(minutes=minutes_ago), **fields)
    OpenEvent.objects.create(
        event_id=event.id,
        tenant_id=event.tenant_id,
        agent=agent,
        action_type=event.action_type,
        risk_band=event.risk_band,
        risk_score=event.risk_score,
        received_at=event.received_at,
    )
    return event
