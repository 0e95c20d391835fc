"""Revocation lists (RFC 5280 §5, §6.3): full ones, shards, and deltas on a full one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Self

from cryptography import x509
from cryptography.x509.oid import CRLEntryExtensionOID, ExtensionOID

from agentid.errors import NotValid, Reason
from agentid.verify.x509.certificates import STRONG, extension, parsing

SKEW: Final = timedelta(seconds=60)
Crl = x509.CertificateRevocationList
KNOWN: Final = frozenset({ExtensionOID.ISSUING_DISTRIBUTION_POINT, ExtensionOID.DELTA_CRL_INDICATOR})


@dataclass(frozen=True)
class RevocationLists:
    """Lists at hand; one of them must be fresh, of the certificate's issuer, and cover the certificate."""

    lists: tuple[Crl, ...]

    @classmethod
    @parsing("a revocation list")
    def of(cls, *lists: bytes) -> Self:
        """Of lists in DER or PEM. Raises: NotValid (malformed)."""
        found = []
        for octets in lists:
            is_pem = octets.startswith(b"-----BEGIN")
            crl = x509.load_pem_x509_crl(octets) if is_pem else x509.load_der_x509_crl(octets)
            _ = crl.extensions
            found.append(crl)
        return cls(tuple(found))

    @parsing("a revocation list")
    def check(self, certificate: x509.Certificate, *, issuer: x509.Certificate, now: datetime) -> None:
        """Raise NotValid: revoked; or not_covered, stale, invalid_signature if no list can tell."""
        full = self._full(certificate, issuer, now)
        entry = full.get_revoked_certificate_by_serial_number(certificate.serial_number)
        for delta in self._about(certificate, issuer, are_deltas=True):
            check_list(delta, issuer, now)
            if _number(delta) <= _number(full):
                continue
            told = delta.get_revoked_certificate_by_serial_number(certificate.serial_number)
            # A revocation counts on any newer list, the end of a hold only on one that continues this list.
            if told is not None and (_continues(delta, full) or not _is_removal(told)):
                entry = told
        if entry is not None and not _is_removal(entry):
            raise NotValid(Reason.REVOKED, f"{_reason(entry).value}, {entry.revocation_date_utc.isoformat()}")

    def _full(self, certificate: x509.Certificate, issuer: x509.Certificate, now: datetime) -> Crl:
        """The newest list that tells of the certificate. Raises NotValid if none does."""
        newest: Crl | None = None
        problem = NotValid(Reason.NOT_COVERED, "no list of the certificate's issuer covers it")
        for each in self._about(certificate, issuer, are_deltas=False):
            try:
                check_list(each, issuer, now)
                newest = each
            except NotValid as error:
                problem = error
        if newest is None:
            raise problem
        return newest

    def _about(
        self, certificate: x509.Certificate, issuer: x509.Certificate, *, are_deltas: bool
    ) -> list[Crl]:
        """The full lists, or the deltas, for the certificate, oldest first."""
        found = (
            each
            for each in self.lists
            if (extension(each, x509.DeltaCRLIndicator) is not None) == are_deltas
            and _covers(each, certificate, issuer)
        )
        return sorted(found, key=_number)


def check_list(crl: Crl, issuer: x509.Certificate, now: datetime) -> None:
    """Raise NotValid unless this issuer signed the list and it is fresh."""
    usage = extension(issuer, x509.KeyUsage)
    if crl.issuer != issuer.subject or usage is None or not usage.crl_sign:
        raise NotValid(Reason.UNTRUSTED_ISSUER, "a list of another CA")
    if not isinstance(crl.signature_hash_algorithm, STRONG):
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, "a list signed with a weak hash")
    key: Any = issuer.public_key()
    if not crl.is_signature_valid(key):
        raise NotValid(Reason.INVALID_SIGNATURE, "the list is not signed by the CA")
    unknown = [each for each in crl.extensions if each.critical and each.oid not in KNOWN]
    if unknown:
        raise NotValid(Reason.UNKNOWN_EXTENSION, unknown[0].oid.dotted_string)
    if crl.last_update_utc > now + SKEW:
        raise NotValid(Reason.NOT_YET_VALID, "the list is from the future")
    if crl.next_update_utc is None or crl.next_update_utc <= now:
        raise NotValid(Reason.STALE, "the list's time is over")


def _continues(delta: Crl, full: Crl) -> bool:
    """Whether a delta may be combined with a list: one of its scope, not older than its base (§5.2.4)."""
    base = extension(delta, x509.DeltaCRLIndicator)
    scopes = {extension(each, x509.IssuingDistributionPoint) for each in (delta, full)}
    return base is not None and base.crl_number <= _number(full) and len(scopes) == 1


def _covers(crl: Crl, certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether the list is for this certificate: a list's distribution point must be one of its own."""
    if crl.issuer != issuer.subject:
        return False
    point = extension(crl, x509.IssuingDistributionPoint)
    if point is None:
        return True
    of_others = point.only_contains_ca_certs or point.only_contains_attribute_certs or point.indirect_crl
    if of_others or point.only_some_reasons or point.relative_name:
        return False
    named = extension(certificate, x509.CRLDistributionPoints) or ()
    own = {name for each in named for name in each.full_name or ()}
    return point.full_name is None or not own.isdisjoint(point.full_name)


def _is_removal(entry: x509.RevokedCertificate) -> bool:
    return _reason(entry) is x509.ReasonFlags.remove_from_crl


def _reason(entry: x509.RevokedCertificate) -> x509.ReasonFlags:
    for each in entry.extensions:
        if isinstance(each.value, x509.CRLReason):
            return each.value.reason
        if each.critical and each.oid != CRLEntryExtensionOID.INVALIDITY_DATE:
            raise NotValid(Reason.UNKNOWN_EXTENSION, each.oid.dotted_string)
    return x509.ReasonFlags.unspecified


def _number(crl: Crl) -> int:
    number = extension(crl, x509.CRLNumber)
    return -1 if number is None else number.crl_number
