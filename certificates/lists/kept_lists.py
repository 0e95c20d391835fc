"""Revocation lists that someone kept, compared with a database that may be older than they are."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.x509 import ReasonFlags

from certificates.models import Certificate, CertificateAuthority, CertificateStatus
from certificates.pki.serials import format_serial
from certificates.querysets import HOLD
from compliance.core.errors import Invalid

BATCH: Final = 1_000
"""Serial numbers asked for in one statement."""


@dataclass(frozen=True)
class ListedRevocation:
    """An entry of a list."""

    revoked_at: datetime
    code: ReasonFlags


@dataclass(frozen=True)
class KeptList:
    """A list of a CA of the current environment; `revoked` by serial number, without ended holds."""

    authority: CertificateAuthority
    number: int
    this_update: datetime
    revoked: dict[str, ListedRevocation]


@dataclass(frozen=True)
class ListGap:
    """What a kept list has and the database lacks.

    `ahead`: by how much its number exceeds the last one that the database knows. `lost`: certificates that
    are not revoked as the list says. `unknown`: serial numbers of certificates that have no row.
    """

    kept: KeptList
    ahead: int
    lost: tuple[Certificate, ...]
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
        issuer = x509.load_der_x509_certificate(bytes(authority.certificate_der))
        if crl.issuer == issuer.subject and crl.is_signature_valid(issuer.public_key()):  # type: ignore[arg-type]
            number = crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
            return KeptList(authority, number, crl.last_update_utc, dict(_revoked(crl)))
    return None


def gap(kept: KeptList, *, now: datetime) -> ListGap:
    """Compare a kept list with the database.

    A hold counts as lost only if the list is newer than the database: it may have been lifted since.
    """
    ahead = kept.number - kept.authority.crl_number
    known = _rows(list(kept.revoked))
    lost = [row for row in known.values() if _is_lost(row, kept.revoked[row.serial_number], ahead, now)]
    return ListGap(kept, ahead, tuple(lost), tuple(sorted(kept.revoked.keys() - known.keys())))


def _rows(serials: list[str]) -> dict[str, Certificate]:
    found: dict[str, Certificate] = {}
    for start in range(0, len(serials), BATCH):
        some = Certificate.objects.filter(serial_number__in=serials[start : start + BATCH])
        found |= {row.serial_number: row for row in some.order_by("issued_at", "id")}
    return found


def _revoked(crl: x509.CertificateRevocationList) -> Iterable[tuple[str, ListedRevocation]]:
    for entry in crl:
        try:
            code = entry.extensions.get_extension_for_class(x509.CRLReason).value.reason
        except x509.ExtensionNotFound:
            code = ReasonFlags.unspecified
        if code is not ReasonFlags.remove_from_crl:
            yield format_serial(entry.serial_number), ListedRevocation(entry.revocation_date_utc, code)


def _is_lost(row: Certificate, listed: ListedRevocation, ahead: int, now: datetime) -> bool:
    status = row.status_at(now)
    if status == CertificateStatus.EXPIRED:
        return False
    if listed.code is ReasonFlags.certificate_hold:
        return status == CertificateStatus.ACTIVE and ahead > 0
    return status == CertificateStatus.ACTIVE or row.revocation_code == HOLD
