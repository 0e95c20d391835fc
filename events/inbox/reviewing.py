"""Reviews of events by officers: recorded, audited, and learned from; a later one replaces an earlier one.

The places that a review marks commit with it. The agent's state changes after the commit: until then a
`PendingReview` waits, which a task takes in if Redis or the process failed.
"""

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from redis.exceptions import RedisError

from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.models import Certificate
from compliance.core import environments
from compliance.stores.sweeps import each
from events.errors import ReviewedMeanwhile
from events.inbox.models import OpenEvent
from events.models import BehaviorEvent, EventReview, PendingReview, ReviewVerdict, RiskBand
from events.risk import baselines, marks, snapshots, state_cache
from events.risk.marks import context_of
from events.risk.scoring.learning import has_taken_in, note_taken_in, unlearn
from events.risk.scoring.marked import places_of
from events.risk.scoring.model import teach_late
from events.risk.scoring.state import AgentState
from events.risk.snapshots import as_event
from events.risk.state_cache import TooBusy
from incidents import services as incidents
from incidents.vocabulary import IncidentCause, Occurrence

log = logging.getLogger(__name__)

OVERDUE = timedelta(seconds=10)  # age from which a pending review is taken in by the task
MOST_AT_ONCE = 500


def review(
    *,
    tenant_id: UUID,
    event_id: Any,
    verdict: ReviewVerdict,
    note: str | None,
    case_number: str | None = None,
    must_be_open: bool = False,
    actor: Actor,
    now: datetime,
) -> tuple[EventReview, bool]:
    """Record a review; return the review that counts now, and whether it is new.

    The event leaves the inbox. A confirmed high-risk event opens the agent's incident or joins it.
    `case_number` is that of the officer's own records. Repeating the present verdict with its note and case
    number, or without them, adds nothing. Raises EventNotFound, and ReviewedMeanwhile if the event
    `must_be_open` and is not in the inbox.
    """
    event = BehaviorEvent.objects.for_tenant(tenant_id).find(event_id)
    places: tuple[str, ...] = ()
    if verdict == ReviewVerdict.CONFIRMED:
        said = EventReview.objects.that_counts(event.id)
        certificate = Certificate.objects.latest_of(event.agent)
        places = places_if_confirmed(event, said=said, certificate=certificate, now=now)
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(event.agent_id)
        closed, _ = OpenEvent.objects.for_tenant(tenant_id).filter(event_id=event.id).delete()
        if must_be_open and not closed:
            raise ReviewedMeanwhile()
        before = EventReview.objects.that_counts(event.id)
        has_changed = before is None or before.verdict != verdict
        if before is not None and not has_changed:
            if note in (None, before.note) and case_number in (None, before.case_number):
                return before, False
            places = tuple(before.marked)
        made = EventReview.objects.create(
            tenant_id=tenant_id,
            agent=agent,
            event_id=event.id,
            number=before.number + 1 if before else 1,
            verdict=verdict,
            note=note,
            case_number=case_number,
            marked=list(places),
            actor_type=actor.type,
            actor_id=actor.id[:255],
            reviewed_at=now,
        )
        _record(made, event, before, actor)
        if has_changed:
            _mark(event, made, now)
            if verdict == ReviewVerdict.CONFIRMED and event.risk_band == RiskBand.HIGH:
                _open_incident(agent, event, case_number, actor, now)
            PendingReview.objects.create(id=made.id, agent_id=agent.id, created_at=now)
            environments.on_commit(partial(take_in, agent_id=agent.id, now=now), robust=True)
    return made, True


def take_in(*, agent_id: UUID, now: datetime) -> bool:
    """Take the agent's pending reviews into its state; return False if they have to wait for Redis.

    The state notes the reviews that it holds, so a crash in between teaches none twice.
    """
    waiting = PendingReview.objects.filter(agent_id=agent_id)
    for pending_id in list(waiting.values_list("id", flat=True)):
        try:
            with environments.atomic():
                pending = waiting.select_for_update().filter(id=pending_id).first()
                if pending is not None:
                    _take_in(EventReview.objects.get(id=pending.id), now)
                    pending.delete()
        except (RedisError, TooBusy) as error:
            log.warning("review %s waits to be taken in: %s", pending_id, type(error).__name__)
            return False
    return True


def take_in_overdue(*, now: datetime) -> int:
    """Take in the overdue reviews; return the number of agents. Safe to repeat."""
    overdue = PendingReview.objects.filter(created_at__lt=now - OVERDUE).order_by("agent_id")
    agents = overdue.values_list("agent_id", flat=True).distinct()[:MOST_AT_ONCE]
    return each(agents, lambda agent_id: take_in(agent_id=agent_id, now=now))


def _take_in(made: EventReview, now: datetime) -> None:
    event = BehaviorEvent.objects.filter(id=made.event_id).first()
    earlier = EventReview.objects.of_event(made.event_id).filter(number__lt=made.number)
    before = earlier.order_by("-number").first()
    if event is None:  # past its retention
        return
    was_learned = _is_learned(event, before)
    if was_learned and made.verdict == ReviewVerdict.DISMISSED:
        return

    context = context_of(made.agent, Certificate.objects.latest_of(made.agent))

    def change(state: AgentState) -> None:
        if has_taken_in(state, made.id.bytes):
            return
        note_taken_in(state, [made.id.bytes])
        if made.verdict == ReviewVerdict.CONFIRMED:
            unlearn(state, as_event(event), made.marked, was_learned=was_learned)
        else:
            teach_late(state, as_event(event), context)

    agent_id, has_limits = str(made.agent_id), made.agent.financial_scope is not None
    rebuild = partial(snapshots.rebuild, agent_id=agent_id, has_limits=has_limits, now=now)
    held = state_cache.amend(agent_id=agent_id, change=change, rebuild=rebuild, now=now)
    snapshots.put({agent_id: held}, now=now)


def _mark(event: BehaviorEvent, made: EventReview, now: datetime) -> None:
    """Mark the places of a confirmed event; a dismissed one counts against the marks that it met."""
    is_confirmed = made.verdict == ReviewVerdict.CONFIRMED
    places = made.marked if is_confirmed else marks.met_by(event)
    marks.put(tenant_id=event.tenant_id, event_id=event.id, places=places, is_confirmed=is_confirmed, now=now)


def _open_incident(
    agent: Agent, event: BehaviorEvent, case_number: str | None, actor: Actor, now: datetime
) -> None:
    certificates = Certificate.objects.of_agent(agent.id).active(now)
    is_at_large = agent.status == AgentStatus.ACTIVE and certificates.exists()
    occurrence = Occurrence(
        cause=IncidentCause.VERDICT,
        agent_id=agent.id,
        agent_name=agent.name,
        text=f"High-risk {event.action_type} confirmed, score {event.risk_score:.2f}",
        detected_at=event.received_at,
        is_contained=not is_at_large,
        event_id=event.id,
        case_number=case_number or "",
    )
    incidents.open_or_join(tenant_id=agent.tenant_id, occurrence=occurrence, actor=actor, now=now)


def places_if_confirmed(
    event: BehaviorEvent, *, said: EventReview | None, certificate: Certificate | None, now: datetime
) -> tuple[str, ...]:
    """Return the places that confirming the event marks, by what its agent and its tenant know at present.

    `said`: the event's last review, if any. `certificate`: its agent's latest.
    """
    agent_id = str(event.agent_id)
    state = state_cache.load([agent_id])[agent_id].state
    if state is None:
        state = snapshots.rebuild(agent_id=agent_id, has_limits=False, now=now)
    was_learned = _is_learned(event, said)
    context = context_of(event.agent, certificate)
    is_common = baselines.known_beside(event.agent, now=now)
    return places_of(as_event(event), state, context, is_common, was_learned=was_learned)


def _is_learned(event: BehaviorEvent, said: EventReview | None) -> bool:
    """Return whether the agent's state has learned from the event, of which `said` is the last review."""
    return event.risk_band == RiskBand.LOW if said is None else said.verdict == ReviewVerdict.DISMISSED


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
            "case_number": made.case_number,
            "marked_places": len(made.marked),
        },
        actor=actor,
        now=made.reviewed_at,
    )
