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
from compliance.core import environments
from compliance.core.errors import ServiceError, Unavailable
from events.ingest.event_input import EventInput
from events.ingest.ingestion import Submission, ingest_all
from events.ingest.storage import ScoredEvent
from events.models import ActionType

LONGEST_WAIT_SECONDS = 5.0
_batch_lock = Lock()


@dataclass(frozen=True)
class SignedMessage:
    """A signature (base64) over a payload's canonical form, and its event; the hash with its algorithm."""

    agent_id: UUID
    signature: str
    algorithm: str
    certificate_serial: str
    payload_hash: str
    signed_at: datetime
    event: ScoredEvent


def ingest(*, tenant_id: UUID, event: EventInput, now: datetime) -> ScoredEvent:
    """Score and store one event, which is durable on return outside a transaction.

    A high-risk event locks the agent and runs `threshold.react()` in the same transaction. Raises
    `AgentNotFound`, and `AgentNotActive` for an agent that is not active or has no active certificate.
    """
    (outcome,) = ingest_all([Submission(tenant_id, event, now)])
    if isinstance(outcome, ServiceError):
        raise outcome
    return outcome


def ingest_batch(
    *, tenant_id: UUID, inputs: Sequence[EventInput | ServiceError], now: datetime
) -> list[ScoredEvent | ServiceError]:
    """Score and store events in their order; return each one's row or error. Errors in `inputs` stay.

    What was refused before it got here is in the list as its error, and stays in its place.
    Batches take turns in a process, so that they don't overtake each other's learning. Raises `Unavailable`
    when the turn doesn't come.
    """
    submissions = [
        Submission(tenant_id, event, now) for event in inputs if not isinstance(event, ServiceError)
    ]
    if not _batch_lock.acquire(timeout=LONGEST_WAIT_SECONDS):
        raise Unavailable("More batches arrive than can be stored; retry with exponential backoff")
    try:
        stored = iter(ingest_all(submissions))
    finally:
        _batch_lock.release()
    return [event if isinstance(event, ServiceError) else next(stored) for event in inputs]


def sign(*, tenant_id: UUID, agent_id: Any, payload: Any, actor: Actor, now: datetime) -> SignedMessage:
    """Sign the canonical JSON of `payload` (RFC 8785) with the agent's key, and store that as its event.

    Raises AgentNotFound, AgentNotActive, Invalid for a payload without a canonical form, and Unavailable
    while the HSM is away.
    """
    agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
    certificate = Certificate.objects.of_agent(agent.id).active(now).first()
    if certificate is None or agent.status != AgentStatus.ACTIVE:
        raise AgentNotActive()
    signed = certificates.sign_message(certificate=certificate, payload=payload)
    facts = {"payload_hash": signed.payload_hash, "algorithm": signed.algorithm}
    facts["certificate_serial"] = signed.certificate_serial
    with environments.atomic():
        event_input = EventInput(
            agent_id=str(agent.id), action_type=ActionType.MESSAGE_SIGNED.value, details=dict(facts)
        )
        event = ingest(tenant_id=tenant_id, event=event_input, now=now)
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
