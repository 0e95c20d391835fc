"""Tell once per agent that its scope and its reports may not speak of actions by the same names."""

from datetime import datetime

import msgspec

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from events.ingest.storage import ScoredEvent
from events.risk.scoring.details import read
from events.risk.scoring.names import scope_of
from events.risk.scoring.reasons import shorten
from webhooks import services as webhooks
from webhooks.vocabulary import EventName

SCORER = Actor.system("risk_scorer")
MISMATCH = "scope_mismatch"
MOST_NAMES = 5  # names told of each side


def is_mismatched(event: ScoredEvent) -> bool:
    return any(reason.name == MISMATCH for reason in event.reasons)


def announce(*, agent: Agent, permitted: frozenset[str], event: ScoredEvent, now: datetime) -> None:
    """Audit and announce the event if it is the agent's first mismatched one.

    Runs under the agent's row lock, in the event's own transaction; the audit entry, which stays for good,
    says that it was done.
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
    auditlog.record(
        tenant_id=agent.tenant_id,
        action=AuditAction.SCOPE_MISMATCH,
        affected_id=agent.id,
        description=f"Agent {agent.name} reports no name that its scope permits",
        metadata={"agent_id": str(agent.id), "event_id": str(event.id), **names},
        actor=SCORER,
        now=now,
    )
    data = {
        "agent_id": str(agent.id),
        "event_id": str(event.id),
        "action_type": event.action_type,
        "risk_score": event.risk_score,
        "risk_band": event.risk_band,
        "reasons": msgspec.to_builtins(event.reasons),
        MISMATCH: names,
    }
    webhooks.publish(tenant_id=agent.tenant_id, name=EventName.RISK_ALERT, data=data, now=now)
