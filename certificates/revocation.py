"""The end of certificates: revoked by a person, by the service, with the agent's retirement, or by time.

A suspended agent's certificate is put on hold, which is a revocation that can be taken back (RFC 5280 §5.3.1,
certificateHold).
"""

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
from certificates.models import Certificate, CertificateStatus, EndedHold
from certificates.publication import PUBLISH
from certificates.reasons import reason_code
from compliance import environments
from compliance.tasks import enqueue_on_commit
from webhooks import services as webhooks
from webhooks.vocabulary import EventName

EXPIRY_ACTOR = Actor.system("certificates.expire")
EXPIRY_BATCH = 500


def revoke(*, tenant_id: UUID, certificate_id: Any, reason: str, actor: Actor, now: datetime) -> Certificate:
    """Revoke by hand, for good if it was on hold; the agent keeps its status.

    Raises `CertificateNotFound`, `AlreadyRevoked`, `CertificateExpired`.
    """
    with environments.atomic():
        certificate = Certificate.objects.for_tenant(tenant_id).find(certificate_id)
        Agent.objects.for_tenant(tenant_id).locked().find(certificate.agent_id)
        certificate = Certificate.objects.locked().find(certificate.id)
        status = certificate.status_at(now)
        if status == CertificateStatus.REVOKED and not certificate.is_on_hold(now):
            raise AlreadyRevoked()
        if status == CertificateStatus.EXPIRED:
            raise CertificateExpired()
        revoke_locked(certificate=certificate, reason=reason, code=reason_code(reason), actor=actor, now=now)
    return certificate


def revoke_for_agent(
    *, agent: Agent, reason: str, code: ReasonFlags, actor: Actor, now: datetime
) -> Certificate | None:
    """Revoke the agent's certificate if one is active or on hold; called under the agent's row lock."""
    certificate = Certificate.objects.of_agent(agent.id).revocable(now).locked().first()
    if certificate is not None:
        revoke_locked(certificate=certificate, reason=reason, code=code, actor=actor, now=now)
    return certificate


def retire_agent(*, tenant_id: UUID, agent_id: Any, reason: str, actor: Actor, now: datetime) -> Agent:
    """Retire an agent for good and revoke its certificate; raises `AgentNotFound`, `AgentRetired`."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        agents.retire(agent=agent, reason=reason, actor=actor, now=now)
        revoke_for_agent(
            agent=agent,
            reason=f"Agent retired: {reason}"[:500],
            code=ReasonFlags.cessation_of_operation,
            actor=actor,
            now=now,
        )
    return agent


def suspend_agent(*, tenant_id: UUID, agent_id: Any, reason: str, actor: Actor, now: datetime) -> Agent:
    """Suspend an agent and put its certificate on hold.

    The public reason is `certificateHold`; `reason` stays with the agent and the audit log. Raises
    `AgentNotFound`, `AgentRetired`, `AgentAlreadySuspended`.
    """
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        agents.suspend(agent=agent, reason=reason, actor=actor, now=now)
        certificate = Certificate.objects.of_agent(agent.id).active(now).locked().first()
        if certificate is not None:
            code = ReasonFlags.certificate_hold
            _revoke(
                certificate=certificate,
                action=AuditAction.CERTIFICATE_HELD,
                reason=code.value,
                code=code,
                actor=actor,
                now=now,
            )
    return agent


def reinstate_agent(*, tenant_id: UUID, agent_id: Any, reason: str, actor: Actor, now: datetime) -> Agent:
    """Reinstate an agent: active at once if its certificate can be released from hold, else pending.

    Raises `AgentNotFound`, `AgentRetired`, `AgentNotSuspended`.
    """
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        found = Certificate.objects.of_agent(agent.id).revocable(now).locked().first()
        agents.reinstate(agent=agent, is_certified=found is not None, reason=reason, actor=actor, now=now)
        if found is not None and found.is_on_hold(now):
            _release(found, actor, now)
    return agent


def revoke_locked(
    *, certificate: Certificate, reason: str, code: ReasonFlags, actor: Actor, now: datetime
) -> None:
    """Revoke a certificate whose agent and row are locked: audited, announced, and put on the next list.

    One on hold stays revoked since the hold began, as X.509 asks of a revocation that replaces a hold.
    """
    if certificate.is_on_hold(now):
        _keep_ended_hold(certificate, now)
    _revoke(
        certificate=certificate,
        action=AuditAction.CERTIFICATE_REVOKED,
        reason=reason,
        code=code,
        actor=actor,
        now=now,
    )


def _revoke(
    *,
    certificate: Certificate,
    action: AuditAction,
    reason: str,
    code: ReasonFlags,
    actor: Actor,
    now: datetime,
) -> None:
    revoked_at = certificate.revoked_at or now
    certificate.status = CertificateStatus.REVOKED
    certificate.revoked_at = revoked_at
    certificate.revocation_reason = reason
    certificate.revocation_code = code.value
    certificate.crl_entry = _entry(certificate, revoked_at, code)
    certificate.save(
        update_fields=["status", "revoked_at", "revocation_reason", "revocation_code", "crl_entry"]
    )
    _record(certificate, action, actor, now, reason=reason, code=code.value)
    webhooks.publish(
        tenant_id=certificate.tenant_id,
        name=EventName.CERTIFICATE_REVOKED,
        data={
            "serial_number": certificate.serial_number,
            "agent_id": certificate.agent_id,
            "revocation_reason": reason,
            "revoked_at": revoked_at,
        },
        now=now,
    )
    enqueue_on_commit(PUBLISH, authority_id=str(certificate.authority_id))


def _release(certificate: Certificate, actor: Actor, now: datetime) -> None:
    """Lift the hold of a certificate whose agent and row are locked."""
    _keep_ended_hold(certificate, now)
    certificate.status = CertificateStatus.ACTIVE
    certificate.revoked_at = certificate.revocation_reason = None
    certificate.revocation_code = ""
    certificate.crl_entry = certificate.first_crl_number = None
    certificate.save(
        update_fields=[
            "status",
            "revoked_at",
            "revocation_reason",
            "revocation_code",
            "crl_entry",
            "first_crl_number",
        ]
    )
    _record(certificate, AuditAction.CERTIFICATE_RELEASED, actor, now)
    enqueue_on_commit(PUBLISH, authority_id=str(certificate.authority_id))


def _keep_ended_hold(certificate: Certificate, now: datetime) -> None:
    """Note that the certificate's hold has ended, for the next delta and for questions about the past."""
    held_at = certificate.revoked_at or now
    # Another process may have read its clock after this one, and yet have had the lock first.
    ended_at = max(held_at, now)
    EndedHold.objects.create(
        certificate=certificate,
        authority_id=certificate.authority_id,
        held_at=held_at,
        ended_at=ended_at,
        crl_entry=_entry(certificate, ended_at, ReasonFlags.remove_from_crl),
        hold_crl_number=certificate.first_crl_number,
    )


def _entry(certificate: Certificate, moment: datetime, code: ReasonFlags) -> bytes:
    return encode_entry(RevokedEntry(int(certificate.serial_number, 16), revoked_at=moment, reason=code))


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
