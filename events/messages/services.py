"""Sign a message and log it; check one, and log the failure for the agent that received it."""

from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.fields.json import KT

from agents.errors import AgentNotActive
from agents.models import Agent, AgentStatus
from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from certificates.models import Certificate
from certificates.pki.jws import parse_detached
from certificates.pki.serials import environment_of
from certificates.public import messages
from certificates.public.messages import MessageSignature, MessageVerification
from certificates.public.verification import validity_at
from compliance.core import environments
from events.ingest.event_input import EventInput
from events.ingest.storage import ScoredEvent
from events.models import ActionType
from events.services import ingest


def sign(
    *,
    tenant_id: UUID,
    agent_id: Any,
    payload: Any,
    as_jws: bool = False,
    audience: str | None = None,
    actor: Actor,
    now: datetime,
) -> tuple[MessageSignature, ScoredEvent]:
    """Sign the canonical JSON of `payload` (RFC 8785) with the agent's key, and store that as its event.

    Returns both. Raises AgentNotFound, AgentNotActive, Invalid for a payload without a canonical form, and
    Unavailable while the HSM is away.
    """
    agent, certificate = _active(tenant_id, agent_id, now)
    signed = messages.sign_message(certificate=certificate, payload=payload, as_jws=as_jws, audience=audience)
    facts = {"payload_hash": signed.payload_hash, "algorithm": signed.algorithm}
    facts["certificate_serial"] = signed.certificate_serial
    told = facts if audience is None else {**facts, "audience": audience}
    with environments.atomic():
        event = _log(agent, ActionType.MESSAGE_SIGNED, told, now)
        auditlog.record(
            tenant_id=tenant_id,
            action=AuditAction.MESSAGE_SIGNED,
            affected_id=agent.id,
            description=f"Message signed in the name of agent {agent.name}",
            metadata={"agent_id": str(agent.id), "event_id": str(event.id), **told},
            actor=actor,
            now=now,
        )
    return signed, event


def verify(
    *,
    payload: Any,
    signature: str = "",
    certificate_serial: str = "",
    jws: str | None = None,
    audience: str | None = None,
    now: datetime,
) -> MessageVerification:
    """Check a message for anyone: with a signature and the serial of its certificate, or with a JWS.

    Raises: CertificateNotFound, Invalid.
    """
    shown: dict[str, Any] = {"payload": payload, "audience": audience, "now": now}
    if jws is not None:
        outcome = messages.verify_jws(jws=jws, **shown)
    else:
        outcome = messages.verify_message(serial=certificate_serial, signature=signature, **shown)
    if outcome.reason == messages.INVALID_SIGNATURE:
        return outcome
    certificate = outcome.certificate
    with environments.use(environment_of(int(certificate.serial_number, 16))):
        signed_at = _signed_at(outcome, jws)
        then = validity_at(certificate, signed_at).valid if signed_at else None
    return replace(outcome, valid_when_signed=then)


def _signed_at(outcome: MessageVerification, jws: str | None) -> datetime | None:
    """Return when the audit log says that an authentic signature was first made.

    A key's signatures of the same octets are equal, so payload, certificate and, for a JWS, audience tell.
    """
    certificate = outcome.certificate
    signed = AuditEntry.objects.for_tenant(certificate.tenant_id).of_type(AuditAction.MESSAGE_SIGNED)
    known = signed.alias(hashed=KT("metadata__payload_hash")).filter(
        hashed=outcome.payload_hash, metadata__certificate_serial=certificate.serial_number
    )
    if jws is not None:
        audience = parse_detached(jws).audience
        is_meant = Q(metadata__audience=audience) if audience else ~Q(metadata__has_key="audience")
        known = known.filter(is_meant)
    return known.order_by("created_at").values_list("created_at", flat=True).first()


def verify_for(
    *, tenant_id: UUID, agent_id: Any, now: datetime, **message: Any
) -> tuple[MessageVerification, ScoredEvent | None]:
    """As `verify`, of a message that an agent of the tenant received: that it is not valid becomes its event.

    A message whose certificate is unknown, or that can't be read, is an error and no event. Raises
    AgentNotFound and AgentNotActive, as `sign`, before the message is looked at.
    """
    agent, _ = _active(tenant_id, agent_id, now)
    outcome = verify(**message, now=now)
    if outcome.valid:
        return outcome, None
    details = {
        "reason": outcome.reason,
        "certificate_serial": outcome.certificate.serial_number,
        "payload_hash": outcome.payload_hash,
    }
    return outcome, _log(agent, ActionType.MESSAGE_VERIFICATION_FAILED, details, now)


def _active(tenant_id: UUID, agent_id: Any, now: datetime) -> tuple[Agent, Certificate]:
    agent = Agent.objects.for_tenant(tenant_id).find(agent_id)
    certificate = Certificate.objects.of_agent(agent.id).active(now).first()
    if certificate is None or agent.status != AgentStatus.ACTIVE:
        raise AgentNotActive()
    return agent, certificate


def _log(agent: Agent, action_type: ActionType, details: dict[str, Any], now: datetime) -> ScoredEvent:
    event = EventInput(agent_id=str(agent.id), action_type=action_type.value, details=dict(details))
    return ingest(tenant_id=agent.tenant_id, event=event, now=now)
