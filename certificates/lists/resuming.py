"""Continue the revocation lists after the database has been restored to an earlier moment.

Lists may have been published since, under numbers that the database does not know, with revocations that it
has lost. A list with a number that was used before would be ignored by those who hold the other one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Final

from cryptography import x509
from cryptography.x509 import ReasonFlags

from agents.models import Agent
from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates import services
from certificates.lists import publication
from certificates.models import Certificate, CertificateAuthority, CertificateStatus, RevocationList
from certificates.pki.serials import format_serial
from certificates.querysets import HOLD
from compliance.core import environments
from compliance.core.errors import Invalid

BATCH: Final = 1_000
"""Serial numbers asked for in one statement."""
ROUNDS_A_SECOND: Final = 1_000
"""More than a CA can publish: each round signs a list in the HSM between several commits."""
REASON: Final = "Revoked before the database was restored"


ListedRevocation = tuple[datetime, ReasonFlags]
"""Date and reason of an entry of a list."""


@dataclass(frozen=True)
class KeptList:
    """A list of a CA of the current environment; `revoked` by serial number, without ended holds."""

    authority: CertificateAuthority
    number: int
    revoked: dict[str, ListedRevocation]


@dataclass(frozen=True)
class ListGap:
    """An entry of a kept list that the database lacks.

    `ahead`: by how much its number exceeds the last one that the database knows. `lost`: certificates that
    are not revoked as the list says. `unknown`: serial numbers of certificates that have no row.
    """

    kept: KeptList
    ahead: int
    lost: tuple[Certificate, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class Resumption:
    """A CA whose lists continue: the last number the database had, and that of the list published now."""

    authority: CertificateAuthority
    last_known: int
    number: int
    revoked_again: tuple[str, ...]
    unknown: tuple[str, ...]


def parse_list(octets: bytes) -> x509.CertificateRevocationList:
    """Read a list in DER or PEM. Raises: Invalid."""
    try:
        if octets.lstrip().startswith(b"-----BEGIN"):
            return x509.load_pem_x509_crl(octets)
        return x509.load_der_x509_crl(octets)
    except ValueError as error:
        raise Invalid(f"Not a revocation list: {error}") from error


def recognized(crl: x509.CertificateRevocationList) -> KeptList | None:
    """Return the list if a CA of the current environment signed it, else None."""
    for authority in CertificateAuthority.objects.all():
        issuer = authority.as_issuer.certificate
        if crl.issuer == issuer.subject and crl.is_signature_valid(issuer.public_key()):  # type: ignore[arg-type]
            break
    else:
        return None
    revoked: dict[str, ListedRevocation] = {}
    for entry in crl:
        try:
            code = entry.extensions.get_extension_for_class(x509.CRLReason).value.reason
        except x509.ExtensionNotFound:
            code = ReasonFlags.unspecified
        if code is not ReasonFlags.remove_from_crl:
            revoked[format_serial(entry.serial_number)] = entry.revocation_date_utc, code
    number = crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    return KeptList(authority, number, revoked)


def gap(kept: KeptList, *, now: datetime) -> ListGap:
    """Compare a list with the database; a hold is lost only if the list is newer: it may have been lifted."""
    ahead, serials = kept.number - kept.authority.crl_number, list(kept.revoked)
    known: set[str] = set()
    lost = []
    for start in range(0, len(serials), BATCH):
        rows = Certificate.objects.filter(serial_number__in=serials[start : start + BATCH])
        for row in rows.order_by("issued_at", "id"):
            known.add(row.serial_number)
            if _is_lost(row, kept.revoked[row.serial_number], ahead, now):
                lost.append(row)
    return ListGap(kept, ahead, tuple(lost), tuple(sorted(kept.revoked.keys() - known)))


def _is_lost(row: Certificate, listed: ListedRevocation, ahead: int, now: datetime) -> bool:
    _, code = listed
    status = row.status_at(now)
    if status == CertificateStatus.EXPIRED:
        return False
    if code is ReasonFlags.certificate_hold:
        return status == CertificateStatus.ACTIVE and ahead > 0
    return status == CertificateStatus.ACTIVE or row.revocation_code == HOLD


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
    revoked_at, code = found.kept.revoked[certificate.serial_number]
    reason = f"{REASON} (list {found.kept.number})"
    if code is ReasonFlags.certificate_hold:
        services.suspend_agent(
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
        services.revoke_locked(
            certificate=locked,
            reason=reason,
            code=code,
            actor=actor,
            now=now,
            since=max(revoked_at, locked.issued_at),
        )


def _resumed(
    authority: CertificateAuthority, gaps: Sequence[ListGap], actor: Actor, now: datetime
) -> Resumption:
    """Raise the CA's number, and drop its lists: none may be served or be a base; publish new ones."""
    own = [each for each in gaps if each.kept.authority == authority]
    published = sorted(each.kept.number for each in own)
    with environments.atomic():
        authority.refresh_from_db(from_queryset=CertificateAuthority.objects.locked())
        last_known, newest = authority.crl_number, RevocationList.objects.newest_of(authority)
        since = newest.this_update if newest else authority.created_at
        missed = ceil(max(0.0, (now - since).total_seconds())) * ROUNDS_A_SECOND
        authority.crl_number = after = max([last_known + missed, *published])
        authority.save(update_fields=["crl_number"])
        RevocationList.objects.filter(authority=authority).delete()
        auditlog.record(
            of=authority,
            action=AuditAction.CRL_RESUMED,
            description=f"Revocation lists of {authority.common_name} continue after {after}",
            metadata={"last_known": last_known, "after": after, "published": published},
            actor=actor,
            now=now,
        )
    full = publication.publish(authority_id=authority.id, actor=actor, now=now, force=True)
    return Resumption(
        authority,
        last_known,
        full.number if full else 0,
        tuple(row.serial_number for each in own for row in each.lost),
        tuple(sorted({serial for each in own for serial in each.unknown})),
    )
