"""Ingesting events, and signing a message in an agent's name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any
from uuid import UUID

from agents.errors import AgentNotActive
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import services as certificates
from certificates.models import Certificate
from compliance import environments
from compliance.errors import ServiceError, Unavailable
from events.ingestion import Submission, ingest_all
from events.intake import Report
from events.models import ActionType
from events.storage import ScoredEvent

LONGEST_TURN_SECONDS = 5.0
_turn = Lock()


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
    event: ScoredEvent


def ingest(*, tenant_id: UUID, report: Report, now: datetime) -> ScoredEvent:
    """Score and store one event; when it returns outside a transaction, the event is durable.

    A high-risk event takes the agent's row lock, and with it what `threshold.react()` does. Raises
    `AgentNotFound`, and `AgentNotActive` for an agent that is not active or has no active certificate.
    """
    (outcome,) = ingest_all([Submission(tenant_id, report, now)])
    if isinstance(outcome, ServiceError):
        raise outcome
    return outcome


def ingest_batch(
    *, tenant_id: UUID, reports: Sequence[Report | ServiceError], now: datetime
) -> list[ScoredEvent | ServiceError]:
    """Score and store events in their order; for each its row or why there is none.

    What was refused before it got here stands among the reports as its error, and stays in its place.
    Batches take turns in a process, so that they don't overtake each other's learning. Raises `Unavailable`
    when the turn doesn't come.
    """
    submissions = [
        Submission(tenant_id, report, now) for report in reports if not isinstance(report, ServiceError)
    ]
    if not _turn.acquire(timeout=LONGEST_TURN_SECONDS):
        raise Unavailable("More batches arrive than can be stored; retry with exponential backoff")
    try:
        stored = iter(ingest_all(submissions))
    finally:
        _turn.release()
    return [report if isinstance(report, ServiceError) else next(stored) for report in reports]


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
        report = Report(
            agent_id=str(agent.id), action_type=ActionType.MESSAGE_SIGNED.value, details=dict(facts)
        )
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
