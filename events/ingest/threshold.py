"""What a high-risk event sets off, and the threshold that stops an agent.

Everything here runs under the agent's row lock in the event's own transaction: strikes are counted in
PostgreSQL by the service's receive clock, so a backdated `occurred_at` evades nothing, two events can't both
be the third, and the revocation commits with the event that caused it. An agent in the mode `observe` is
not stopped: that it would have been is recorded and announced, once for each series of strikes.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from cryptography.x509 import ReasonFlags
from django.conf import settings

from agents import services as agents
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import services as certificates
from compliance.core import environments
from compliance.incidents import services as incidents
from compliance.incidents.vocabulary import IncidentCause, Occurrence
from compliance.observing import metrics
from compliance.stores.sweeps import each
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent
from webhooks import services as webhooks
from webhooks.vocabulary import EventName

SCORER = Actor.system("risk_scorer")
AUTO_REVOCATION = Actor.system("auto_revocation")
WOULD_HAVE_STOPPED = {"would_have_stopped": True}
REASON_CODE = ReasonFlags.privilege_withdrawn


def strikes_of(agent: Agent, *, now: datetime) -> int:
    """High-risk events of the window that count: those received since the agent's last reinstatement."""
    high = BehaviorEvent.objects.of_agent(agent.id).high_risk().since(now - settings.HIGH_RISK_WINDOW)
    return high.since_reinstatement(agent.reinstated_at).count()


def react(*, agent: Agent, event: ScoredEvent, now: datetime) -> None:
    """Audit and announce a new high-risk event, and stop the agent if it was one too many; locked.

    The tenant's mode is read here, after the wait for the lock: a change committed meanwhile counts.
    """
    strikes = strikes_of(agent, now=now)
    agent.last_high_risk_at = now
    agent.save(update_fields=["last_high_risk_at"])
    name = metrics.environment()
    environments.on_commit(lambda: metrics.STRIKES.labels(name).inc(), robust=True)
    _record_high_event(agent, event, strikes, now)
    is_over = strikes >= settings.HIGH_RISK_STRIKES
    is_noted = (
        is_over and agent.is_observed and note_breach(agent=agent, event=event, strikes=strikes, now=now)
    )
    _alert(agent, event, now, would_have_stopped=is_noted)
    if is_over and not agent.is_observed:
        stop(agent=agent, event=event, strikes=strikes, now=now)
    elif strikes == 1:
        _announce_high_risk(agent, event, strikes, now, breached=False)


def stop(*, agent: Agent, event: BehaviorEvent | ScoredEvent, strikes: int, now: datetime) -> None:
    """Revoke the agent's certificate, halt the agent and open its incident because of `event`; locked."""
    reason = f"Automatic revocation: {_in_words(strikes)}"
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=AuditAction.AGENT_HIGH_RISK,
        affected_id=agent.id,
        description=reason,
        metadata={"agent_id": str(agent.id), "strikes": strikes, **_summary(event)},
        actor=AUTO_REVOCATION,
        now=now,
    )
    revoked = certificates.revoke_for_agent(
        agent=agent, reason=reason, code=REASON_CODE, actor=AUTO_REVOCATION, now=now
    )
    agents.halt(agent=agent, reason=reason, actor=AUTO_REVOCATION, now=now)
    occurrence = Occurrence(
        cause=IncidentCause.THRESHOLD,
        agent_id=agent.id,
        agent_name=agent.name,
        text=reason,
        detected_at=event.received_at,
        is_contained=True,
        event_id=UUID(str(event.id)),
        certificate_id=revoked.id if revoked else None,
        serial_number=revoked.serial_number if revoked else "",
    )
    incidents.open_or_join(tenant_id=agent.tenant_id, occurrence=occurrence, actor=AUTO_REVOCATION, now=now)
    _announce_high_risk(agent, event, strikes, now, breached=True)
    environments.on_commit(lambda: metrics.revoked(event.received_at), robust=True)


def note_breach(*, agent: Agent, event: BehaviorEvent | ScoredEvent, strikes: int, now: datetime) -> bool:
    """Record that `event` would have stopped the observed agent, whose row is locked.

    Returns whether it did so: only the first such event of a series is recorded. A series lasts while one of
    the strikes that count found the agent over the threshold.
    """
    noted_at = agent.would_have_stopped_at
    is_known = noted_at is not None and noted_at >= _counts_from(agent, now)
    agent.would_have_stopped_at = event.received_at
    agent.save(update_fields=["would_have_stopped_at"])
    if is_known:
        return False
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=AuditAction.AGENT_WOULD_HAVE_STOPPED,
        affected_id=agent.id,
        description=f"Agent {agent.name} is only observed and was not stopped: {_in_words(strikes)}",
        metadata={
            "agent_id": str(agent.id),
            "strikes": strikes,
            "window_minutes": _window_minutes(),
            **_summary(event),
        },
        actor=AUTO_REVOCATION,
        now=now,
    )
    _announce_high_risk(agent, event, strikes, now, breached=True, **WOULD_HAVE_STOPPED)
    return True


def sweep(*, now: datetime) -> int:
    """Stop every active agent that stands over the threshold, unless it is only observed; how many.

    The safety net of `react()`.
    """
    high = BehaviorEvent.objects.high_risk().since(now - settings.HIGH_RISK_WINDOW)
    over = high.agents_over(settings.HIGH_RISK_STRIKES)
    return each(over, lambda row: _stop_if_over(*row, now))


def _stop_if_over(tenant_id: Any, agent_id: Any, now: datetime) -> bool:
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        strikes = strikes_of(agent, now=now)
        since = now - settings.HIGH_RISK_WINDOW
        last = BehaviorEvent.objects.of_agent(agent.id).high_risk().since(since).latest_received(1).first()
        if agent.status != AgentStatus.ACTIVE or strikes < settings.HIGH_RISK_STRIKES or last is None:
            return False
        if not agent.is_observed:
            stop(agent=agent, event=last, strikes=strikes, now=now)
        elif note_breach(agent=agent, event=last, strikes=strikes, now=now):
            _alert(agent, last, now, would_have_stopped=True)
    return not agent.is_observed


def _counts_from(agent: Agent, now: datetime) -> datetime:
    """The moment from which the agent's strikes count: its reinstatement, or the start of the window."""
    start = now - settings.HIGH_RISK_WINDOW
    return start if agent.reinstated_at is None else max(start, agent.reinstated_at)


def _record_high_event(agent: Agent, event: ScoredEvent, strikes: int, now: datetime) -> None:
    """Record the event, and the status review of its agent that it triggers."""
    # Names only: an entry stays for good, and what a reason observed is the agent's own text.
    names = [reason.name for reason in event.reasons]
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=AuditAction.EVENT_HIGH_RISK,
        affected_id=event.id,
        description=f"High-risk {event.action_type} by agent {agent.name}: {event.risk_score:.2f}",
        metadata={"agent_id": str(agent.id), "strikes": strikes, **_summary(event), "reasons": names},
        actor=SCORER,
        now=now,
    )
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=AuditAction.AGENT_REVIEW_TRIGGERED,
        affected_id=agent.id,
        description=f"Status review of agent {agent.name} after a high-risk event",
        metadata={"agent_id": str(agent.id), "event_id": str(event.id), "status": agent.status},
        actor=SCORER,
        now=now,
    )


def _summary(event: BehaviorEvent | ScoredEvent) -> dict[str, Any]:
    """The fields of an event for the audit log and webhooks, without its details, which may hold anything."""
    return {
        "event_id": str(event.id),
        "action_type": event.action_type,
        "risk_score": event.risk_score,
        "risk_band": event.risk_band,
    }


def _window_minutes() -> int:
    return int(settings.HIGH_RISK_WINDOW.total_seconds() // 60)


def _in_words(strikes: int) -> str:
    return f"{strikes} high-risk events within {_window_minutes()} minutes"


def _alert(
    agent: Agent, event: BehaviorEvent | ScoredEvent, now: datetime, *, would_have_stopped: bool
) -> None:
    reasons = msgspec.to_builtins(event.reasons)
    more = WOULD_HAVE_STOPPED if would_have_stopped else {}
    _announce(EventName.RISK_ALERT, agent, now, **_summary(event), reasons=reasons, **more)


def _announce_high_risk(
    agent: Agent,
    event: BehaviorEvent | ScoredEvent,
    strikes: int,
    now: datetime,
    *,
    breached: bool,
    **more: bool,
) -> None:
    _announce(
        EventName.AGENT_HIGH_RISK,
        agent,
        now,
        risk_score=event.risk_score,
        high_events=strikes,
        window_minutes=_window_minutes(),
        event_id=str(event.id),
        threshold_breached=breached,
        **more,
    )


def _announce(name: EventName, agent: Agent, now: datetime, **data: Any) -> None:
    webhooks.publish(tenant_id=agent.tenant_id, name=name, data={"agent_id": str(agent.id), **data}, now=now)
