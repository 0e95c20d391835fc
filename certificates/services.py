"""Revoke certificates, hold and release them (RFC 5280 §5.3.1), end expired ones, and announce all of it."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from cryptography.x509 import ReasonFlags
from django.db.models import F, Q

from agents import services as agents
from agents.mailing import tell_owners
from agents.models import Agent
from auditlog import services as auditlog
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, AuditAction
from certificates import errors
from certificates.models import Certificate, CertificateStatus, EndedHold, WrappedAgentKey
from certificates.pki.reasons import ADMINISTRATIVE, encode_entry, reason_code
from certificates.querysets import CertificateQuerySet, ends_within
from compliance.core import environments
from compliance.core.tasks import enqueue_on_commit
from compliance.core.wording import counted
from compliance.keys.base import KeyStorage
from compliance.stores import sql
from compliance.stores.sweeps import each
from incidents import services as incidents
from incidents.vocabulary import IncidentCause, Occurrence
from webhooks.publishing import publish, publish_all
from webhooks.vocabulary import EventName

log = logging.getLogger(__name__)

PUBLISH: Final = "certificates.publish_crl"
SWEEP: Final = "certificates.sweep_ends"
SWEEPER: Final = Actor.system(SWEEP)
ANNOUNCED_DAYS: Final = (1, 7, 30)
SWEPT_AT_ONCE: Final = 500
_REVOKE: Final = """
UPDATE certificates_certificate AS certificate
SET status = 'revoked', revoked_at = ended.revoked_at, crl_entry = ended.crl_entry,
    revocation_reason = %(reason)s, revocation_code = %(code)s
FROM unnest(%(ids)s::uuid[], %(times)s::timestamptz[], %(entries)s::bytea[])
    AS ended (id, revoked_at, crl_entry)
WHERE certificate.id = ended.id AND certificate.tenant_id = %(tenant)s
"""
_UNREVOKED: Final = {
    "status": CertificateStatus.ACTIVE,
    "revocation_code": "",
    **dict.fromkeys(("revoked_at", "revocation_reason", "crl_entry", "first_crl_number")),
}


def revoke(*, tenant_id: UUID, certificate_id: Any, reason: str, actor: Actor, now: datetime) -> Certificate:
    """Revoke a certificate; raises `CertificateNotFound`, `AlreadyRevoked`, `CertificateExpired`,
    `Invalid` for a reason that can't be given by hand.

    With an agent's current certificate goes the one that it supersedes, if they still overlap. Unless the
    reason is an administrative one, the agent's incident is opened or joined.
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
        if certificate.superseded_at is None:
            revoke_for_agent(agent=agent, reason=reason, code=code, actor=actor, now=now)
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
    """Revoke the agent's certificates that are active or on hold: two while a renewed one overlaps.

    Called under the agent's row lock. Returns the newest of them.
    """
    own = Certificate.objects.for_tenant(agent.tenant_id).of_agent(agent.id)
    revoked = list(own.revocable(now).locked())
    for certificate in revoked:
        revoke_locked(certificate=certificate, reason=reason, code=code, actor=actor, now=now)
    return revoked[0] if revoked else None


def retire_agent(*, tenant_id: UUID, agent_id: Any, reason: str, actor: Actor, now: datetime) -> Agent:
    """Retire an agent for good and revoke its certificates; raises `AgentNotFound`, `AgentRetired`."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        agents.retire(agent=agent, reason=reason, actor=actor, now=now)
        public_reason, code = f"Agent retired: {reason}"[:500], ReasonFlags.cessation_of_operation
        revoke_for_agent(agent=agent, reason=public_reason, code=code, actor=actor, now=now)
    return agent


def suspend_agent(*, tenant_id: UUID, agent_id: Any, reason: str, actor: Actor, now: datetime) -> Agent:
    """Suspend an agent and put its certificates on hold; `reason` is not public."""
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        agents.suspend(agent=agent, reason=reason, actor=actor, now=now)
        own = Certificate.objects.for_tenant(tenant_id).of_agent(agent.id)
        for certificate in own.active(now).locked():
            code = ReasonFlags.certificate_hold
            revoke_locked(certificate=certificate, reason=code.value, code=code, actor=actor, now=now)
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
        found = [one for one in own.revocable(now).locked() if not supersede(one, now)]
        agents.reinstate(
            agent=agent,
            is_certified=bool(found),
            may_undo_stop=may_undo_stop,
            reason=reason,
            actor=actor,
            now=now,
        )
        incidents.note_reinstated(
            tenant_id=tenant_id, agent_id=agent.id, agent_name=agent.name, reason=reason, actor=actor, now=now
        )
        held = [one for one in found if one.is_on_hold(now)]
        release_all(certificates=held, actor=actor, now=now)
        for certificate in held:
            enqueue_on_commit(PUBLISH, authority_id=str(certificate.authority_id))
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
    """Revoke a locked certificate, as of its hold's beginning, else `since`, else now, and announce it."""
    revoke_all(certificates=[certificate], reason=reason, code=code, now=now, since=since)
    announce_revoked(certificates=[certificate], reason=reason, code=code, actor=actor, now=now)
    enqueue_on_commit(PUBLISH, authority_id=str(certificate.authority_id))


def revoke_all(
    *,
    certificates: Sequence[Certificate],
    reason: str,
    code: ReasonFlags,
    now: datetime,
    since: datetime | None = None,
) -> None:
    """Revoke a tenant's locked certificates, dated as in `revoke_locked`; `certificateHold` is a hold.

    The caller announces it and has the lists published.
    """
    if not certificates:
        return
    _end_holds([one for one in certificates if one.is_on_hold(now)], now)
    for one in certificates:
        one.status, one.revoked_at = CertificateStatus.REVOKED, one.revoked_at or since or now
        one.revocation_reason, one.revocation_code = reason, code.value
        one.crl_entry = encode_entry(int(one.serial_number, 16), one.revoked_at, code)
    params = {
        "tenant": certificates[0].tenant_id,
        "reason": reason,
        "code": code.value,
        "ids": [one.id for one in certificates],
        "times": [one.revoked_at for one in certificates],
        "entries": [one.crl_entry for one in certificates],
    }
    sql.prepared_write(_REVOKE, params)
    if code is not ReasonFlags.certificate_hold:
        _forget_wrapped_keys(certificates)


def announce_revoked(
    *, certificates: Sequence[Certificate], reason: str, code: ReasonFlags, actor: Actor, now: datetime
) -> None:
    """Audit and publish that a tenant's certificates were revoked or put on hold."""
    if not certificates:
        return
    is_hold = code is ReasonFlags.certificate_hold
    action = AuditAction.CERTIFICATE_HELD if is_hold else AuditAction.CERTIFICATE_REVOKED
    said = {"reason": reason, "code": code.value}
    auditlog.record_all([_entry(one, action, actor, now, **said) for one in certificates])
    data = [
        {**_named(one), "revocation_reason": reason, "revoked_at": one.revoked_at} for one in certificates
    ]
    name = EventName.CERTIFICATE_REVOKED
    publish_all(tenant_id=certificates[0].tenant_id, name=name, data=data, now=now)


def release_all(*, certificates: Sequence[Certificate], actor: Actor, now: datetime) -> None:
    """Lift the hold of a tenant's locked certificates, all on hold; the caller has the lists published."""
    if not certificates:
        return
    _end_holds(certificates, now)
    own = Certificate.objects.for_tenant(certificates[0].tenant_id)
    own.filter(id__in=[one.id for one in certificates]).update(**_UNREVOKED)
    action = AuditAction.CERTIFICATE_RELEASED
    auditlog.record_all([_entry(one, action, actor, now) for one in certificates])


def _forget_wrapped_keys(certificates: Sequence[Certificate]) -> None:
    wrapped = [one.kms_key_arn for one in certificates if one.key_storage == KeyStorage.WRAPPED]
    if wrapped:
        WrappedAgentKey.objects.filter(key_uri__in=wrapped).delete()


def _end_holds(certificates: Sequence[Certificate], now: datetime) -> None:
    """Record the end of holds, for the next delta and for questions about the past."""
    ended = []
    for certificate in certificates:
        held_at = certificate.revoked_at or now
        # Another process may have read its clock later, and yet have acquired the lock first.
        ended_at = max(held_at, now)
        entry = encode_entry(int(certificate.serial_number, 16), ended_at, ReasonFlags.remove_from_crl)
        ended.append(
            EndedHold(
                certificate=certificate,
                authority_id=certificate.authority_id,
                held_at=held_at,
                ended_at=ended_at,
                crl_entry=entry,
                hold_crl_number=certificate.first_crl_number,
            )
        )
    EndedHold.objects.bulk_create(ended)


def each_due(
    due: CertificateQuerySet, work: Callable[[Agent, Certificate], object], *, order: str = "expires_at"
) -> int:
    """Work on up to 500 due certificates, each under the locks of its agent and its own; return how many."""

    def work_locked(row: tuple[UUID, UUID, UUID]) -> bool:
        certificate_id, agent_id, tenant_id = row
        with environments.atomic():
            agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
            certificate = due.for_tenant(tenant_id).filter(id=certificate_id).locked().first()
            if certificate is not None:
                work(agent, certificate)
        return certificate is not None

    rows = due.order_by(order, "id").values_list("id", "agent_id", "tenant_id")
    return each(rows[:SWEPT_AT_ONCE], work_locked)


def supersede_due(*, now: datetime) -> int:
    """Revoke up to 500 renewed certificates whose overlap with their successor is over; return how many."""
    due = Certificate.objects.revocable(now).filter(superseded_at__lte=now)
    return each_due(due, lambda _, one: supersede(one, now), order="superseded_at")


def supersede_from(certificate: Certificate, at: datetime, *, actor: Actor, now: datetime) -> None:
    """Set from when a locked certificate is superseded: at once, or by the sweep."""
    certificate.superseded_at = at
    certificate.save(update_fields=["superseded_at"])
    supersede(certificate, now, actor=actor)


def supersede(certificate: Certificate, now: datetime, *, actor: Actor = SWEEPER) -> bool:
    """Revoke a locked certificate if it was renewed and its overlap is over; return whether it did."""
    if certificate.superseded_at is None or certificate.superseded_at > now:
        return False
    code = ReasonFlags.superseded
    revoke_locked(certificate=certificate, reason=code.value, code=code, actor=actor, now=now)
    return True


def expire_due(*, now: datetime) -> int:
    """Mark and announce up to 500 certificates that are past their end; return how many."""
    due = Certificate.objects.filter(status="active", expires_at__lt=now)
    return each_due(due, lambda _, one: mark_expired(one, now))


def mark_expired(certificate: Certificate, now: datetime) -> None:
    """Mark and announce an expired certificate; called under the locks of agent and certificate."""
    certificate.status = CertificateStatus.EXPIRED
    certificate.save(update_fields=["status"])
    _forget_wrapped_keys([certificate])
    record(certificate, AuditAction.CERTIFICATE_EXPIRED, SWEEPER, now)
    announced = {"certificate_id": certificate.id, "expires_at": certificate.expires_at}
    announce(certificate, EventName.CERTIFICATE_EXPIRED, announced, now)


def announce_due(*, now: datetime) -> int:
    """Announce certificates that end within 1, 7 or 30 days, up to 500 for each number; return how many.

    Each is announced once for a number, the smallest that fits, and for none that exceeds its whole life.
    """
    count = 0
    for days in ANNOUNCED_DAYS:
        is_new = Q(end_announced=None) | Q(end_announced__gt=days)
        is_long = Q(expires_at__gt=F("issued_at") + timedelta(days=days))
        due = Certificate.objects.filter(ends_within(days, now), is_new, is_long)
        count += each_due(due, partial(announce_end, days=days, now=now))
    return count


def announce_end(agent: Agent, certificate: Certificate, *, days: int, now: datetime) -> None:
    """Audit and announce that a certificate ends within so many days; both rows are locked."""
    certificate.end_announced = days
    certificate.save(update_fields=["end_announced"])
    record(
        certificate,
        AuditAction.CERTIFICATE_EXPIRING,
        SWEEPER,
        now,
        verb=f"of agent {agent.name} expires within {counted(days, 'day')}",
        expires_at=certificate.expires_at.isoformat(),
        days=days,
    )
    told = {"certificate_id": certificate.id, "expires_at": certificate.expires_at, "days": days}
    announce(certificate, EventName.CERTIFICATE_EXPIRING, told, now)
    text = f"Its certificate ends at {certificate.expires_at:%Y-%m-%d %H:%M} UTC. Then it is refused."
    tell_owners(agents=[agent], what=f"to be renewed within {counted(days, 'day')}", text=text, now=now)


def announce(certificate: Certificate, name: EventName, data: dict[str, Any], now: datetime) -> None:
    """Send a webhook event with the certificate's agent and serial number beside `data`."""
    publish(tenant_id=certificate.tenant_id, name=name, data={**_named(certificate), **data}, now=now)


def _named(certificate: Certificate) -> dict[str, Any]:
    return {"agent_id": certificate.agent_id, "serial_number": certificate.serial_number}


def record(certificate: Certificate, action: AuditAction, actor: Actor, now: datetime, **said: Any) -> None:
    """Audit an act on the certificate; `verb` tells it, by default as the action does."""
    auditlog.record_all([_entry(certificate, action, actor, now, **said)])


def _entry(
    certificate: Certificate,
    action: AuditAction,
    actor: Actor,
    now: datetime,
    *,
    verb: str = "",
    **metadata: Any,
) -> AuditEntry:
    serial_number, verb = certificate.serial_number, verb or action.value.rpartition(".")[2]
    description = f"Certificate {serial_number} {verb}"
    metadata = {"agent_id": str(certificate.agent_id), "serial_number": serial_number, **metadata}
    return auditlog.entry(
        of=certificate, action=action, description=description, metadata=metadata, actor=actor, now=now
    )
