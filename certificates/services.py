"""Bring certificates into being, and to their end by revocation, hold (RFC 5280 §5.3.1) or expiry.

Issuing commits the intent, then builds, lints, signs and announces under the agent's lock. What may take long
(a key generation) happens before the lock, and every check is repeated under it. A crash at any point leaves
either a certificate or an unfinished `Issuance`.
"""

import logging
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from cryptography.x509 import ReasonFlags

from agents import services as agents
from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import errors
from certificates.models import (
    Certificate,
    CertificateStatus,
    EndedHold,
    WrappedAgentKey,
)
from certificates.pki.reasons import ADMINISTRATIVE, encode_entry, reason_code
from compliance.core import environments
from compliance.core.tasks import enqueue_on_commit
from compliance.keys.base import KeyStorage
from compliance.stores.sweeps import each
from incidents import services as incidents
from incidents.vocabulary import IncidentCause, Occurrence
from webhooks.publishing import publish
from webhooks.vocabulary import EventName

log = logging.getLogger(__name__)

PUBLISH: Final = "certificates.publish_crl"
"""The task that publishes the lists of an authority."""
EXPIRY_ACTOR: Final = Actor.system("certificates.expire")
EXPIRY_BATCH: Final = 500


def revoke(*, tenant_id: UUID, certificate_id: Any, reason: str, actor: Actor, now: datetime) -> Certificate:
    """Revoke a certificate; raises `CertificateNotFound`, `AlreadyRevoked`, `CertificateExpired`,
    `Invalid` for a reason that can't be given by hand.

    Unless the reason is an administrative one, the agent's incident is opened or joined.
    """
    with environments.atomic():
        certificate = Certificate.objects.for_tenant(tenant_id).find(certificate_id)
        agent = Agent.objects.for_tenant(tenant_id).locked().find(certificate.agent_id)
        certificate = Certificate.objects.for_tenant(tenant_id).locked().find(certificate.id)
        status = certificate.status_at(now)
        if status == CertificateStatus.REVOKED and not certificate.is_on_hold(now):
            raise errors.AlreadyRevoked()
        if status == CertificateStatus.EXPIRED:
            raise errors.CertificateExpired()
        code = reason_code(reason)
        revoke_locked(certificate=certificate, reason=reason, code=code, actor=actor, now=now)
        if code not in ADMINISTRATIVE:
            occurrence = Occurrence(
                cause=IncidentCause.REVOCATION,
                agent_id=agent.id,
                agent_name=agent.name,
                text=f"Certificate revoked: {code.value}",
                detected_at=now,
                is_contained=True,
                certificate_id=certificate.id,
                serial_number=certificate.serial_number,
            )
            incidents.open_or_join(tenant_id=tenant_id, occurrence=occurrence, actor=actor, now=now)
    return certificate


def revoke_for_agent(
    *, agent: Agent, reason: str, code: ReasonFlags, actor: Actor, now: datetime
) -> Certificate | None:
    """Revoke the agent's certificate if one is active or on hold; called under the agent's row lock."""
    own = Certificate.objects.for_tenant(agent.tenant_id).of_agent(agent.id)
    certificate = own.revocable(now).locked().first()
    if certificate is not None:
        revoke_locked(certificate=certificate, reason=reason, code=code, actor=actor, now=now)
    return certificate


def retire_agent(*, tenant_id: UUID, agent_id: Any, reason: str, actor: Actor, now: datetime) -> Agent:
    """Retire an agent for good and revoke its certificate; raises `AgentNotFound`, `AgentRetired`."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        agents.retire(agent=agent, reason=reason, actor=actor, now=now)
        public_reason, code = f"Agent retired: {reason}"[:500], ReasonFlags.cessation_of_operation
        revoke_for_agent(agent=agent, reason=public_reason, code=code, actor=actor, now=now)
    return agent


def suspend_agent(*, tenant_id: UUID, agent_id: Any, reason: str, actor: Actor, now: datetime) -> Agent:
    """Suspend an agent and put its certificate on hold; `reason` is not public."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        agents.suspend(agent=agent, reason=reason, actor=actor, now=now)
        own = Certificate.objects.for_tenant(tenant_id).of_agent(agent.id)
        certificate = own.active(now).locked().first()
        if certificate is not None:
            code = ReasonFlags.certificate_hold
            _revoke(certificate, AuditAction.CERTIFICATE_HELD, code.value, code, actor, now)
    return agent


def reinstate_agent(
    *, tenant_id: UUID, agent_id: Any, reason: str, may_undo_stop: bool, actor: Actor, now: datetime
) -> Agent:
    """Reinstate an agent: active at once if its certificate can be released from hold, else pending.

    It is entered in the agent's ongoing incident, which is reopened if contained. Raises `AgentNotFound`, and
    as `agents.services.reinstate`.
    """
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        own = Certificate.objects.for_tenant(tenant_id).of_agent(agent.id)
        found = own.revocable(now).locked().first()
        agents.reinstate(
            agent=agent,
            is_certified=found is not None,
            may_undo_stop=may_undo_stop,
            reason=reason,
            actor=actor,
            now=now,
        )
        incidents.note_reinstated(
            tenant_id=tenant_id, agent_id=agent.id, agent_name=agent.name, reason=reason, actor=actor, now=now
        )
        if found is not None and found.is_on_hold(now):
            _end_hold(found, now)
            found.status, found.revocation_code = CertificateStatus.ACTIVE, ""
            found.revoked_at = found.revocation_reason = None
            found.crl_entry = found.first_crl_number = None
            _save(found)
            record(found, AuditAction.CERTIFICATE_RELEASED, actor, now)
    return agent


def revoke_locked(
    *,
    certificate: Certificate,
    reason: str,
    code: ReasonFlags,
    actor: Actor,
    now: datetime,
    since: datetime | None = None,
) -> None:
    """Revoke a locked certificate and announce it.

    It counts as revoked from the beginning of its hold if it has one, else from `since`, else from now.
    """
    if certificate.is_on_hold(now):
        _end_hold(certificate, now)
    _revoke(certificate, AuditAction.CERTIFICATE_REVOKED, reason, code, actor, now, since=since)


def _revoke(
    certificate: Certificate,
    action: AuditAction,
    reason: str,
    code: ReasonFlags,
    actor: Actor,
    now: datetime,
    *,
    since: datetime | None = None,
) -> None:
    revoked_at = certificate.revoked_at or since or now
    certificate.status, certificate.revoked_at = CertificateStatus.REVOKED, revoked_at
    certificate.revocation_reason, certificate.revocation_code = reason, code.value
    certificate.crl_entry = encode_entry(int(certificate.serial_number, 16), revoked_at, code)
    _save(certificate)
    if code is not ReasonFlags.certificate_hold:
        _forget_wrapped_key(certificate)
    record(certificate, action, actor, now, reason=reason, code=code.value)
    announced = {"revocation_reason": reason, "revoked_at": revoked_at}
    announce(certificate, EventName.CERTIFICATE_REVOKED, announced, now)


def _forget_wrapped_key(certificate: Certificate) -> None:
    """Delete the key of a certificate that has ended for good."""
    if certificate.key_storage == KeyStorage.WRAPPED:
        WrappedAgentKey.objects.filter(key_uri=certificate.kms_key_arn).delete()


def _save(certificate: Certificate) -> None:
    revocation = ("revoked_at", "revocation_reason", "revocation_code", "crl_entry", "first_crl_number")
    certificate.save(update_fields=["status", *revocation])
    enqueue_on_commit(PUBLISH, authority_id=str(certificate.authority_id))


def _end_hold(certificate: Certificate, now: datetime) -> None:
    """Record the end of a hold, for the next delta and for questions about the past."""
    held_at = certificate.revoked_at or now
    # Another process may have read its clock later, and yet have acquired the lock first.
    ended_at = max(held_at, now)
    EndedHold.objects.create(
        certificate=certificate,
        authority_id=certificate.authority_id,
        held_at=held_at,
        ended_at=ended_at,
        crl_entry=encode_entry(int(certificate.serial_number, 16), ended_at, ReasonFlags.remove_from_crl),
        hold_crl_number=certificate.first_crl_number,
    )


def expire_due(*, now: datetime) -> int:
    """Mark and announce up to 500 certificates that are past their end; return how many."""
    due = Certificate.objects.overdue(now).order_by("expires_at", "id")
    rows = due.values_list("id", "agent_id", "tenant_id")[:EXPIRY_BATCH]
    return each(rows, lambda row: _expire(*row, now))


def _expire(certificate_id: UUID, agent_id: UUID, tenant_id: UUID, now: datetime) -> bool:
    with environments.atomic():
        Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        own = Certificate.objects.for_tenant(tenant_id).filter(id=certificate_id)
        overdue = own.overdue(now).locked().first()
        if overdue is not None:
            mark_expired(overdue, now)
    return overdue is not None


def mark_expired(certificate: Certificate, now: datetime) -> None:
    """Mark and announce an expired certificate; called under the locks of agent and certificate."""
    certificate.status = CertificateStatus.EXPIRED
    certificate.save(update_fields=["status"])
    _forget_wrapped_key(certificate)
    record(certificate, AuditAction.CERTIFICATE_EXPIRED, EXPIRY_ACTOR, now)
    announced = {"certificate_id": certificate.id, "expires_at": certificate.expires_at}
    announce(certificate, EventName.CERTIFICATE_EXPIRED, announced, now)


def announce(certificate: Certificate, name: EventName, data: dict[str, Any], now: datetime) -> None:
    """Send a webhook event with the certificate's agent and serial number beside `data`."""
    named = {"agent_id": certificate.agent_id, "serial_number": certificate.serial_number}
    publish(tenant_id=certificate.tenant_id, name=name, data={**named, **data}, now=now)


def record(
    certificate: Certificate,
    action: AuditAction,
    actor: Actor,
    now: datetime,
    *,
    verb: str = "",
    **metadata: Any,
) -> None:
    serial_number, verb = certificate.serial_number, verb or action.value.rpartition(".")[2]
    auditlog.record(
        tenant_id=certificate.tenant_id,
        action=action,
        affected_id=certificate.id,
        description=f"Certificate {serial_number} {verb}",
        metadata={"agent_id": str(certificate.agent_id), "serial_number": serial_number, **metadata},
        actor=actor,
        now=now,
    )
