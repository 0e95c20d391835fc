"""Publishing revocation lists: numbered strictly upwards, made only when due, never in a request."""

from datetime import datetime
from typing import Final
from uuid import UUID

from cryptography.x509 import ReasonFlags
from django.conf import settings

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from certificates.authorities import issuer_info, signing_key
from certificates.crl import CrlWindow, RevokedEntry, build_crl
from certificates.models import AuthorityRole, Certificate, CertificateAuthority, RevocationList
from certificates.querysets import CertificateQuerySet
from compliance import environments

PUBLISH: Final = "certificates.publish_crl"
KEPT_LISTS: Final = 5
MARK_BATCH: Final = 10_000
RENEW_AT: Final = 0.5
"""A list is renewed after this share of its life, which leaves the other half to mend what hinders it."""


def publish(*, authority_id: UUID, actor: Actor, now: datetime, force: bool = False) -> RevocationList | None:
    """A new list of one CA if one is due (or `force`); None if not. 503 errors of the HSM.

    Publishers of one CA take turns under its row lock, and whoever comes second finds nothing due: a storm of
    revocations ends in a few lists. The HSM signs under that lock, which nothing else waits for.
    """
    with environments.atomic():
        authority = CertificateAuthority.objects.locked().get(id=authority_id)
        if not force and not is_due(authority, now):
            return None
        return _publish(authority, actor, now)


def publish_due(*, actor: Actor, now: datetime) -> int:
    """Publish the lists that are due, of all CAs that sign lists; how many were. 503 errors of the HSM."""
    due = [
        authority.id for authority in CertificateAuthority.objects.publishing(now) if is_due(authority, now)
    ]
    return sum(publish(authority_id=authority_id, actor=actor, now=now) is not None for authority_id in due)


def is_due(authority: CertificateAuthority, now: datetime) -> bool:
    """Whether there is no list, the newest has spent half its life, or a revocation is on none yet."""
    newest = RevocationList.objects.filter(authority=authority).order_by("-number").defer("der").first()
    if newest is None:
        return True
    if now >= newest.this_update + (newest.next_update - newest.this_update) * RENEW_AT:
        return True
    return _listable(authority, now).unpublished().exists()


def _publish(authority: CertificateAuthority, actor: Actor, now: datetime) -> RevocationList:
    listed = list(
        _listable(authority, now)
        .order_by("revoked_at", "id")
        .values_list("serial_number", "revoked_at", "revocation_code", "id", "first_crl_number")
    )
    authority.crl_number += 1
    authority.save(update_fields=["crl_number"])
    window = CrlWindow(authority.crl_number, now.replace(microsecond=0), now + settings.CRL_VALIDITY)
    der = build_crl(
        entries=(_entry(*row[:3]) for row in listed),
        window=window,
        issuer=issuer_info(authority),
        key=signing_key(authority),
        scoped=authority.role != AuthorityRole.ROOT,
    )
    published = RevocationList.objects.create(
        authority=authority,
        number=window.number,
        this_update=window.this_update,
        next_update=window.next_update.replace(microsecond=0),
        entry_count=len(listed),
        der=der,
    )
    _mark_published([row[3] for row in listed if row[4] is None], window.number)
    _forget_old(authority, window.number)
    _record(authority, published, actor, now)
    return published


def _entry(serial_number: str, revoked_at: datetime | None, code: str) -> RevokedEntry:
    if revoked_at is None:
        raise ValueError(f"certificate {serial_number} is revoked without a time")
    return RevokedEntry(int(serial_number, 16), revoked_at, ReasonFlags(code or "unspecified"))


def _listable(authority: CertificateAuthority, now: datetime) -> CertificateQuerySet:
    return Certificate.objects.filter(authority=authority).listable(now, settings.CRL_VALIDITY)


def _mark_published(ids: list[UUID], number: int) -> None:
    """Exactly those that were listed: one that was revoked meanwhile stays due."""
    for start in range(0, len(ids), MARK_BATCH):
        batch = ids[start : start + MARK_BATCH]
        Certificate.objects.filter(id__in=batch).update(first_crl_number=number)


def _forget_old(authority: CertificateAuthority, number: int) -> None:
    RevocationList.objects.filter(authority=authority, number__lte=number - KEPT_LISTS).delete()


def _record(authority: CertificateAuthority, published: RevocationList, actor: Actor, now: datetime) -> None:
    auditlog.record(
        tenant_id=SERVICE_TENANT_ID,
        action=AuditAction.CRL_PUBLISHED,
        affected_id=authority.id,
        description=f"Revocation list {published.number} of {authority.common_name} published",
        metadata={
            "number": published.number,
            "entries": published.entry_count,
            "next_update": published.next_update.isoformat(),
        },
        actor=actor,
        now=now,
    )
