"""What follows from an event: strikes, the threshold that stops an agent, an alert about a mistaken scope.

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
from agents.mailing import tell_owners
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from certificates import services as certificates
from compliance.core import environments
from compliance.core.json_values import written
from compliance.observing import metrics
from compliance.stores.sweeps import each
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent
from events.risk.scoring.details import read
from events.risk.scoring.names import scope_of
from events.risk.scoring.reasons import shorten
from incidents import services as incidents
from incidents.vocabulary import IncidentCause, Occurrence
from webhooks.publishing import publish
from webhooks.vocabulary import EventName

SCORER = Actor.system("risk_scorer")
AUTO_REVOCATION = Actor.system("auto_revocation")
WOULD_HAVE_STOPPED = {"would_have_stopped": True}
REASON_CODE = ReasonFlags.privilege_withdrawn
MISMATCH = "scope_mismatch"
MOST_NAMES = 5  # names told of each side of a mismatch

AnyEvent = BehaviorEvent | ScoredEvent


def strikes_of(agent: Agent, *, now: datetime) -> int:
    """High-risk events of the window that count: those received since the agent's last reinstatement."""
    return BehaviorEvent.objects.of_agent(agent.id).strikes(now, agent.reinstated_at).count()


def react(*, agent: Agent, event: ScoredEvent, now: datetime) -> None:
    """Audit and announce a new high-risk event, and stop the agent if it was one too many; locked.

    The tenant's mode is read here, after the wait for the lock: a change committed meanwhile counts.
    """
    strikes = strikes_of(agent, now=now)
    agent.last_high_risk_at = now
    agent.save(update_fields=["last_high_risk_at"])
    name = metrics.environment()
    environments.on_commit(lambda: metrics.STRIKES.labels(name).inc(), robust=True)
    _record(
        agent,
        AuditAction.EVENT_HIGH_RISK,
        f"High-risk {event.action_type} by agent {agent.name}: {event.risk_score:.2f}",
        actor=SCORER,
        now=now,
        affected_id=event.id,
        strikes=strikes,
        # Names only: an entry stays for good, and what a reason observed is the agent's own text.
        reasons=[reason.name for reason in event.reasons],
        **_summary(event),
    )
    _record(
        agent,
        AuditAction.AGENT_REVIEW_TRIGGERED,
        f"Status review of agent {agent.name} after a high-risk event",
        actor=SCORER,
        now=now,
        event_id=str(event.id),
        status=agent.status,
    )
    is_over = strikes >= settings.HIGH_RISK_STRIKES
    is_observed = is_over and agent.is_observed
    is_noted = is_observed and note_breach(agent=agent, event=event, strikes=strikes, now=now)
    _alert(agent, event, now, **(WOULD_HAVE_STOPPED if is_noted else {}))
    if is_over and not is_observed:
        stop(agent=agent, event=event, strikes=strikes, now=now)
    elif strikes == 1:
        _announce_high_risk(agent, event, strikes, now, threshold_breached=False)
    if strikes == settings.HIGH_RISK_STRIKES - 1:
        warn(agent=agent, event=event, strikes=strikes, now=now)


def warn(*, agent: Agent, event: ScoredEvent, strikes: int, now: datetime) -> None:
    """Audit and announce that one more strike would stop the agent, so that a person can act first; locked.

    The window ends when the first of the strikes stops counting. Of an agent that is only observed no owner
    is mailed.
    """
    counting = BehaviorEvent.objects.of_agent(agent.id).strikes(now, agent.reinstated_at)
    first = counting.earliest("received_at").received_at
    told: dict[str, Any] = {
        "strikes": strikes,
        "of": settings.HIGH_RISK_STRIKES,
        "window_ends_at": written(first + settings.HIGH_RISK_WINDOW),
    }
    threat = "the threshold, which does not stop it" if agent.is_observed else "being stopped"
    said = f"Agent {agent.name} is one strike from {threat}, until {told['window_ends_at']}"
    _record(agent, AuditAction.AGENT_STRIKE, said, actor=SCORER, now=now, event_id=str(event.id), **told)
    data = {"agent_id": str(agent.id), "event_id": str(event.id), "risk_score": event.risk_score, **told}
    data["owner"] = agent.owner
    publish(tenant_id=agent.tenant_id, name=EventName.AGENT_STRIKE, data=data, now=now)
    if not agent.is_observed:
        text = f"{strikes} of {told['of']} strikes: one more before {told['window_ends_at']} stops the agent."
        tell_owners(agents=[agent], what="one strike from a stop", text=text, now=now)


def stop(*, agent: Agent, event: AnyEvent, strikes: int, now: datetime) -> None:
    """Revoke the agent's certificate, halt the agent and open its incident because of `event`; locked."""
    reason = f"Automatic revocation: {_in_words(strikes)}"
    action, actor = AuditAction.AGENT_HIGH_RISK, AUTO_REVOCATION
    _record(agent, action, reason, actor=actor, now=now, strikes=strikes, **_summary(event))
    revoked = certificates.revoke_for_agent(
        agent=agent, reason=reason, code=REASON_CODE, actor=actor, now=now
    )
    agents.halt(agent=agent, strikes=strikes, reason=reason, actor=actor, now=now)
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
    incidents.open_or_join(tenant_id=agent.tenant_id, occurrence=occurrence, actor=actor, now=now)
    _announce_high_risk(agent, event, strikes, now, threshold_breached=True)
    environments.on_commit(lambda: metrics.revoked(event.received_at), robust=True)


def note_breach(*, agent: Agent, event: AnyEvent, strikes: int, now: datetime) -> bool:
    """Record that `event` would have stopped the observed agent, whose row is locked.

    Returns whether it did so: only the first such event of a series is recorded. A series lasts while one of
    the strikes that count found the agent over the threshold.
    """
    noted_at, counted_from = agent.would_have_stopped_at, now - settings.HIGH_RISK_WINDOW
    if agent.reinstated_at is not None:
        counted_from = max(counted_from, agent.reinstated_at)
    agent.would_have_stopped_at = event.received_at
    agent.save(update_fields=["would_have_stopped_at"])
    if noted_at is not None and noted_at >= counted_from:
        return False
    _record(
        agent,
        AuditAction.AGENT_WOULD_HAVE_STOPPED,
        f"Agent {agent.name} is only observed and was not stopped: {_in_words(strikes)}",
        actor=AUTO_REVOCATION,
        now=now,
        strikes=strikes,
        window_minutes=window_minutes(),
        **_summary(event),
    )
    _announce_high_risk(agent, event, strikes, now, threshold_breached=True, **WOULD_HAVE_STOPPED)
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
            _alert(agent, last, now, **WOULD_HAVE_STOPPED)
    return not agent.is_observed


def is_mismatched(event: ScoredEvent) -> bool:
    """Return whether the agent's scope and its reports may not speak of actions by the same names."""
    return any(reason.name == MISMATCH for reason in event.reasons)


def announce_mismatch(*, agent: Agent, permitted: frozenset[str], event: ScoredEvent, now: datetime) -> None:
    """Audit and announce the event if it is the agent's first mismatched one; locked.

    The audit entry, which stays for good, says that it was done.
    """
    told = AuditEntry.objects.for_tenant(agent.tenant_id).about(agent.id).of_type(AuditAction.SCOPE_MISMATCH)
    if told.exists():
        return
    facts = read(event.details)
    seen = (*facts.tools, *facts.verbs)
    names = {
        "expected": [shorten(name) for name in scope_of(permitted).nearest(seen[0])[:MOST_NAMES]],
        "seen": [shorten(name) for name in seen[:MOST_NAMES]],
    }
    _record(
        agent,
        AuditAction.SCOPE_MISMATCH,
        f"Agent {agent.name} reports no name that its scope permits",
        actor=SCORER,
        now=now,
        event_id=str(event.id),
        **names,
    )
    _alert(agent, event, now, **{MISMATCH: names})


def window_minutes() -> int:
    return int(settings.HIGH_RISK_WINDOW.total_seconds() // 60)


def _in_words(strikes: int) -> str:
    return f"{strikes} high-risk events within {window_minutes()} minutes"


def _summary(event: AnyEvent) -> dict[str, Any]:
    """The fields of an event for the audit log and webhooks, without its details, which may hold anything."""
    names = ("action_type", "risk_score", "risk_band")
    return {"event_id": str(event.id), **{name: getattr(event, name) for name in names}}


def _record(
    agent: Agent,
    action: AuditAction,
    description: str,
    *,
    actor: Actor,
    now: datetime,
    affected_id: object = None,
    **metadata: Any,
) -> None:
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=action,
        affected_id=affected_id or agent.id,
        description=description,
        metadata={"agent_id": str(agent.id), **metadata},
        actor=actor,
        now=now,
    )


def _alert(agent: Agent, event: AnyEvent, now: datetime, **more: Any) -> None:
    reasons = msgspec.to_builtins(event.reasons)
    data = {"agent_id": str(agent.id), **_summary(event), "reasons": reasons, **more}
    publish(tenant_id=agent.tenant_id, name=EventName.RISK_ALERT, data=data, now=now)


def _announce_high_risk(agent: Agent, event: AnyEvent, strikes: int, now: datetime, **more: bool) -> None:
    data = {
        "agent_id": str(agent.id),
        "risk_score": event.risk_score,
        "high_events": strikes,
        "window_minutes": window_minutes(),
        "event_id": str(event.id),
        **more,
    }
    publish(tenant_id=agent.tenant_id, name=EventName.AGENT_HIGH_RISK, data=data, now=now)
