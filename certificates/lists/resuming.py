"""Continue the revocation lists after the database has been restored to an earlier moment.

Lists may have been published since, under numbers that the database does not know, with revocations that it
has lost. A list with a number that was used before would be ignored by those who hold the other one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Final

from cryptography.x509 import ReasonFlags

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from certificates import revocation
from certificates.lists import publication
from certificates.lists.kept_lists import KeptList, ListGap, gap
from certificates.models import Certificate, CertificateAuthority, RevocationList
from compliance.core import environments

ROUNDS_A_SECOND: Final = 1_000
"""More than a CA can publish: each round signs a list in the HSM between several commits."""
REASON: Final = "Revoked before the database was restored"


@dataclass(frozen=True)
class Resumption:
    """A CA whose lists continue.

    `last_known` is the last number that the database had, `number` that of the list published now.
    """

    authority: CertificateAuthority
    last_known: int
    number: int
    revoked_again: tuple[str, ...]
    unknown: tuple[str, ...]


def resume(*, kept: Sequence[KeptList], actor: Actor, now: datetime) -> list[Resumption]:
    """Revoke again what kept lists show as revoked; publish lists of every CA under unused numbers.

    A CA's next number exceeds those of the kept lists, and what the CA can have published since the newest
    list in the database. Deltas begin anew: lists from before are no base for them. No other process may
    publish meanwhile. Raises: ListBeingMade, Unavailable (HSM).
    """
    gaps = [gap(each, now=now) for each in kept]
    for each in gaps:
        for certificate in each.lost:
            _revoke_again(certificate, each, actor, now)
    publishing = CertificateAuthority.objects.publishing(now).order_by("created_at", "id")
    return [_resumed(authority, gaps, actor, now) for authority in publishing]


def _revoke_again(certificate: Certificate, found: ListGap, actor: Actor, now: datetime) -> None:
    """Revoke a certificate as of its date on the list; a hold suspends its agent again."""
    listed = found.kept.revoked[certificate.serial_number]
    reason = f"{REASON} (list {found.kept.number})"
    if listed.code is ReasonFlags.certificate_hold:
        revocation.suspend_agent(
            tenant_id=certificate.tenant_id,
            agent_id=certificate.agent_id,
            reason=reason,
            actor=actor,
            now=now,
        )
        return
    with environments.atomic():
        Agent.objects.for_tenant(certificate.tenant_id).locked().find(certificate.agent_id)
        locked = Certificate.objects.for_tenant(certificate.tenant_id).locked().find(certificate.id)
        revocation.revoke_locked(
            certificate=locked,
            reason=reason,
            code=listed.code,
            actor=actor,
            now=now,
            since=max(listed.revoked_at, locked.issued_at),
        )


def _resumed(
    authority: CertificateAuthority, gaps: Sequence[ListGap], actor: Actor, now: datetime
) -> Resumption:
    own = [each for each in gaps if each.kept.authority == authority]
    last_known = _advance(authority, [each.kept.number for each in own], actor, now)
    published = publication.publish(authority_id=authority.id, actor=actor, now=now, force=True)
    return Resumption(
        authority,
        last_known,
        published.number if published else 0,
        tuple(row.serial_number for each in own for row in each.lost),
        tuple(sorted({serial for each in own for serial in each.unknown})),
    )


def _advance(authority: CertificateAuthority, published: list[int], actor: Actor, now: datetime) -> int:
    """Raise the CA's number, and drop its lists: none may be served or be a base. Return the old number."""
    with environments.atomic():
        locked = CertificateAuthority.objects.locked().get(id=authority.id)
        last_known, newest = locked.crl_number, RevocationList.objects.newest_of(locked)
        since = newest.this_update if newest else locked.created_at
        missed = ceil(max(0.0, (now - since).total_seconds())) * ROUNDS_A_SECOND
        locked.crl_number = max([last_known + missed, *published])
        # The process that held the lease went with the database that was replaced.
        locked.crl_lease_holder = locked.crl_lease_until = None
        locked.save(update_fields=["crl_number", "crl_lease_holder", "crl_lease_until"])
        RevocationList.objects.filter(authority=locked).delete()
        auditlog.record(
            tenant_id=SERVICE_TENANT_ID,
            action=AuditAction.CRL_RESUMED,
            affected_id=locked.id,
            description=f"Revocation lists of {locked.common_name} continue after {locked.crl_number}",
            metadata={"last_known": last_known, "after": locked.crl_number, "published": sorted(published)},
            actor=actor,
            now=now,
        )
    return last_known
