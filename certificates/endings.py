"""Announce that certificates end soon: 30, 7 and 1 days before, once each."""

from datetime import datetime, timedelta
from functools import partial
from typing import Final

from django.db.models import F, Q

from agents.mailing import tell_owners
from agents.models import Agent
from auditlog.vocabulary import Actor, AuditAction
from certificates.models import Certificate
from certificates.querysets import ends_within
from certificates.services import announce, each_due, record
from compliance.core.wording import counted
from webhooks.vocabulary import EventName

ANNOUNCED_DAYS: Final = (1, 7, 30)
ACTOR: Final = Actor.system("certificates.announce_ends")


def announce_due(*, now: datetime) -> int:
    """Announce certificates that have so few days left, up to 500 for each number; return how many.

    One that is found late is announced with the fewest days that fit. Neither a renewed certificate nor one
    whose whole life is as short is announced.
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
        ACTOR,
        now,
        verb=f"of agent {agent.name} expires within {counted(days, 'day')}",
        expires_at=certificate.expires_at.isoformat(),
        days=days,
    )
    told = {"certificate_id": certificate.id, "expires_at": certificate.expires_at, "days": days}
    announce(certificate, EventName.CERTIFICATE_EXPIRING, told, now)
    text = f"Its certificate ends at {certificate.expires_at:%Y-%m-%d %H:%M} UTC. Then it is refused."
    tell_owners(agents=[agent], what=f"to be renewed within {counted(days, 'day')}", text=text, now=now)
