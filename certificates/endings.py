"""Announce that certificates end soon: 30, 7 and 1 days before, once each."""

from datetime import datetime, timedelta
from functools import partial
from typing import Final
from uuid import UUID

from django.db.models import F, Q

from agents.mailing import tell_owner
from agents.models import Agent
from auditlog.vocabulary import Actor, AuditAction
from certificates.models import Certificate
from certificates.querysets import CertificateQuerySet, ends_within
from certificates.services import announce, record
from compliance.core import environments
from compliance.core.wording import counted
from compliance.stores.sweeps import each
from webhooks.vocabulary import EventName

ANNOUNCED_DAYS: Final = (1, 7, 30)
ACTOR: Final = Actor.system("certificates.announce_ends")
BATCH: Final = 500


def announce_due(*, now: datetime) -> int:
    """Announce certificates that have so few days left, up to 500 for each number; return how many.

    One that is found late is announced with the fewest days that fit. Neither a renewed certificate nor one
    whose whole life is as short is announced.
    """
    return sum(
        each(
            _due(days, now).order_by("expires_at", "id").values_list("id", "agent_id", "tenant_id")[:BATCH],
            partial(_announce_locked, days=days, now=now),
        )
        for days in ANNOUNCED_DAYS
    )


def _due(days: int, now: datetime) -> CertificateQuerySet:
    span = timedelta(days=days)
    is_new = Q(end_announced=None) | Q(end_announced__gt=days)
    return Certificate.objects.filter(ends_within(days, now), is_new, expires_at__gt=F("issued_at") + span)


def _announce_locked(row: tuple[UUID, UUID, UUID], *, days: int, now: datetime) -> bool:
    certificate_id, agent_id, tenant_id = row
    with environments.atomic():
        agent = Agent.objects.for_tenant(tenant_id).locked().find(agent_id)
        own = _due(days, now).for_tenant(tenant_id)
        certificate = own.filter(id=certificate_id).locked().first()
        if certificate is not None:
            announce_end(agent=agent, certificate=certificate, days=days, now=now)
    return certificate is not None


def announce_end(*, agent: Agent, certificate: Certificate, days: int, now: datetime) -> None:
    """Audit and announce that a certificate ends within so many days; both rows are locked."""
    certificate.end_announced = days
    certificate.save(update_fields=["end_announced"])
    record(
        certificate,
        AuditAction.CERTIFICATE_EXPIRING,
        ACTOR,
        now,
        verb=f"of agent {agent.name} expires within {counted(days, 'day')}",
        expires_at=certificate.expires_at.isoformat(),
        days=days,
    )
    told = {"certificate_id": certificate.id, "expires_at": certificate.expires_at, "days": days}
    announce(certificate, EventName.CERTIFICATE_EXPIRING, told, now)
    tell_owner(
        agent=agent,
        subject=f"The certificate of {agent.name} ends within {counted(days, 'day')}",
        text=f"It ends at {certificate.expires_at:%Y-%m-%d %H:%M} UTC. Then the agent is refused.",
        now=now,
    )
