"""The end of certificates: revoked by a person, by the service, with the agent's retirement, or by time."""

from datetime import datetime
from typing import Any
from uuid import UUID

from cryptography.x509 import ReasonFlags

from agents import services as agents
from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.crl import RevokedEntry, encode_entry
from certificates.errors import AlreadyRevoked, CertificateExpired
from certificates.models import Certificate, CertificateStatus
from certificates.publication import PUBLISH
from certificates.reasons import reason_code
from compliance import environments
from compliance.tasks import enqueue_on_commit
from webhooks import services as webhooks
from webhooks.vocabulary import EventName

EXPIRY_ACTOR = Actor.system("certificates.expire")
EXPIRY_BATCH = 500


def revoke(*, tenant_id: UUID, certificate_id: Any, reason: str, actor: Actor, now: datetime) -> Certificate:
    """Revoke by hand; the agent keeps its status.

    Raises `CertificateNotFound`, `AlreadyRevoked`, `CertificateExpired`.
    """
    with environments.atomic():
        certificate = Certificate.objects.for_tenant(tenant_id).find(certificate_id)
        Agent.objects.for_tenant(tenant_id).locked().find(certificate.agent_id)
        certificate = Certificate.objects.locked().find(certificate.id)
        status = certificate.status_at(now)
        if status == CertificateStatus.REVOKED:
            raise AlreadyRevoked()
        if status == CertificateStatus.EXPIRED:
            raise CertificateExpired()
        revoke_locked(certificate=certificate, reason=reason, code=reason_code(reason), actor=actor, now=now)
    return certificate


def revoke_for_agent(
    *, agent: Agent, reason: str, reason_code: ReasonFlags, actor: Actor, now: datetime
) -> Certificate | None:
    """Revoke the agent's active certificate, if it has one; called under the agent's row lock."""
    certificate = Certificate.objects.of_agent(agent.id).active(now).locked().first()
    if certificate is not None:
        revoke_locked(certificate=certificate, reason=reason, code=reason_code, actor=actor, now=now)
    return certificate


def retire_agent(*, tenant_id: UUID, agent_id: Any, reason: str, actor: Actor, now: datetime) -> Agent:
    """Retire an agent for good and revoke its certificate; raises `AgentNotFound`, `AgentRetired`."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        agents.retire(agent=agent, reason=reason, actor=actor, now=now)
        revoke_for_agent(
            agent=agent,
            reason=f"Agent retired: {reason}"[:500],
            reason_code=ReasonFlags.cessation_of_operation,
            actor=actor,
            now=now,
        )
    return agent


def revoke_locked(
    *, certificate: Certificate, reason: str, code: ReasonFlags, actor: Actor, now: datetime
) -> None:
    """Revoke a certificate whose agent and row are locked: audited, announced, and put on the next list."""
    certificate.status = CertificateStatus.REVOKED
    certificate.revoked_at = now
    certificate.revocation_reason = reason
    certificate.revocation_code = code.value
    certificate.crl_entry = encode_entry(
        RevokedEntry(int(certificate.serial_number, 16), revoked_at=now, reason=code)
    )
    certificate.save(
        update_fields=["status", "revoked_at", "revocation_reason", "revocation_code", "crl_entry"]
    )
    _record(certificate, AuditAction.CERTIFICATE_REVOKED, actor, now, reason=reason, code=code.value)
    webhooks.publish(
        tenant_id=certificate.tenant_id,
        name=EventName.CERTIFICATE_REVOKED,
        data={
            "serial_number": certificate.serial_number,
            "agent_id": certificate.agent_id,
            "revocation_reason": reason,
            "revoked_at": now,
        },
        now=now,
    )
    enqueue_on_commit(PUBLISH, authority_id=str(certificate.authority_id))


def expire_due(*, now: datetime) -> int:
    """Mark certificates that are past their end, announce each once; how many there were (at most 500)."""
    due = list(
        Certificate.objects.overdue(now)
        .order_by("expires_at", "id")
        .values_list("id", "agent_id")[:EXPIRY_BATCH]
    )
    return sum(_expire(certificate_id, agent_id, now) for certificate_id, agent_id in due)


def _expire(certificate_id: UUID, agent_id: UUID, now: datetime) -> bool:
    with environments.atomic():
        Agent.objects.locked().find(agent_id)
        overdue = Certificate.objects.overdue(now).locked().filter(id=certificate_id).first()
        if overdue is not None:
            mark_expired(certificate=overdue, now=now)
    return overdue is not None


def mark_expired(*, certificate: Certificate, now: datetime) -> None:
    """Note that a certificate is past its end; called under the locks of agent and certificate."""
    certificate.status = CertificateStatus.EXPIRED
    certificate.save(update_fields=["status"])
    _record(certificate, AuditAction.CERTIFICATE_EXPIRED, EXPIRY_ACTOR, now)
    webhooks.publish(
        tenant_id=certificate.tenant_id,
        name=EventName.CERTIFICATE_EXPIRED,
        data={
            "certificate_id": certificate.id,
            "serial_number": certificate.serial_number,
            "agent_id": certificate.agent_id,
            "expires_at": certificate.expires_at,
        },
        now=now,
    )


def _record(
    certificate: Certificate, action: AuditAction, actor: Actor, now: datetime, **metadata: Any
) -> None:
    verb = action.value.rpartition(".")[2]
    auditlog.record(
        tenant_id=certificate.tenant_id,
        action=action,
        affected_id=certificate.id,
        description=f"Certificate {certificate.serial_number} {verb}",
        metadata={
            "agent_id": str(certificate.agent_id),
            "serial_number": certificate.serial_number,
            **metadata,
        },
        actor=actor,
        now=now,
    )
