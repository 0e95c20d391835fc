"""Ingesting an event, and signing a message in an agent's name."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from agents.errors import AgentNotActive
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import services as certificates
from certificates.models import Certificate
from compliance import environments
from compliance.identifiers import new_id
from events import memory, threshold
from events.context import context_of
from events.models import ActionType, BehaviorEvent, RiskBand
from events.rolling import raise_risk
from events.scoring import Assessment, assess


@dataclass(frozen=True)
class Report:
    """What a client says of an event; `occurred_at` None means when it is received."""

    agent_id: Any
    action_type: str
    details: dict[str, Any] = field(default_factory=dict)
    occurred_at: datetime | None = None
    session_id: str | None = None
    chain_id: UUID | None = None


@dataclass(frozen=True)
class SignedMessage:
    """A signature over a payload's canonical form, when it was made, and the event that tells of it.

    `signature` is base64, `payload_hash` reads `sha256:` and the hex digest.
    """

    agent_id: UUID
    signature: str
    algorithm: str
    certificate_serial: str
    payload_hash: str
    signed_at: datetime
    event: BehaviorEvent


def ingest(*, tenant_id: UUID, report: Report, now: datetime) -> BehaviorEvent:
    """Score and store one event; when it returns outside a transaction, the event is durable.

    A high-risk event takes the agent's row lock, and with it what `threshold.react()` does. Raises
    `AgentNotFound`, and `AgentNotActive` for an agent that is not active or has no active certificate.
    """
    agent = Agent.objects.for_tenant(tenant_id).find(report.agent_id)
    active_certificate(agent, now=now)
    context = context_of(agent)
    seen = memory.recall(agent=agent, context=context, now=now)
    event = _row(agent, report, now)
    scored = memory.as_event(event)
    assessment = assess(seen.state, scored, context)
    _write_verdict(event, assessment)
    with environments.atomic():
        _store(event, agent, now)
        remember = partial(memory.remember, agent=agent, context=context, event_id=event.id, event=scored)
        environments.on_commit(partial(remember, seen=seen, learned=assessment.state), robust=True)
    return event


def sign(*, tenant_id: UUID, agent_id: Any, payload: Any, actor: Actor, now: datetime) -> SignedMessage:
    """Sign the canonical JSON of `payload` (RFC 8785) with the agent's key, and log it as its event.

    Nothing is signed for an agent that is stopped, and no signature is handed out whose event isn't stored.
    Raises `AgentNotFound`, `AgentNotActive`, `Invalid` for a payload without a canonical form and
    `Unavailable` while the HSM is away.
    """
    agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
    certificate = active_certificate(agent, now=now)
    signed = certificates.sign_message(certificate=certificate, payload=payload)
    facts = {
        "payload_hash": signed.payload_hash,
        "algorithm": signed.algorithm,
        "certificate_serial": signed.certificate_serial,
    }
    with environments.atomic():
        report = Report(agent_id=agent.id, action_type=ActionType.MESSAGE_SIGNED, details=facts)
        event = ingest(tenant_id=tenant_id, report=report, now=now)
        auditlog.record(
            tenant_id=tenant_id,
            action=AuditAction.MESSAGE_SIGNED,
            affected_id=agent.id,
            description=f"Message signed in the name of agent {agent.name}",
            metadata={"agent_id": str(agent.id), "event_id": str(event.id), **facts},
            actor=actor,
            now=now,
        )
    return SignedMessage(agent_id=agent.id, signature=signed.signature, signed_at=now, event=event, **facts)


def active_certificate(agent: Agent, *, now: datetime) -> Certificate:
    """The active certificate of an active agent; anything else is `AgentNotActive`."""
    if agent.status == AgentStatus.ACTIVE:
        certificate = Certificate.objects.of_agent(agent.id).active(now).first()
        if certificate is not None:
            return certificate
    raise AgentNotActive()


def _row(agent: Agent, report: Report, now: datetime) -> BehaviorEvent:
    return BehaviorEvent(
        id=new_id(),
        tenant_id=agent.tenant_id,
        agent_id=agent.id,
        action_type=report.action_type,
        occurred_at=report.occurred_at or now,
        received_at=now,
        details=report.details,
        session_id=report.session_id,
        chain_id=report.chain_id,
    )


def _write_verdict(event: BehaviorEvent, assessment: Assessment) -> None:
    event.risk_score = assessment.score
    event.risk_band = assessment.band
    event.reasons = msgspec.to_builtins(assessment.reasons)
    event.model_version = assessment.model_version


def _store(event: BehaviorEvent, agent: Agent, now: datetime) -> None:
    """Insert the event and write what follows from it, inside the caller's transaction."""
    if event.risk_band != RiskBand.HIGH:
        event.save(force_insert=True)
        raise_risk(agent=agent, score=event.risk_score, now=now)
        return
    locked = Agent.objects.for_tenant(agent.tenant_id).locked().find(agent.id)
    active_certificate(locked, now=now)
    event.save(force_insert=True)
    raise_risk(agent=locked, score=event.risk_score, now=now)
    threshold.react(agent=locked, event=event, now=now)
