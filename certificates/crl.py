"""Certificate revocation lists (RFC 5280 §5) as pure functions."""

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from certificates.x509 import IssuerInfo, PrivateKey


class RevokedEntry(NamedTuple):
    """One line of a list; `reason` unspecified is left out of it, as §5.3.1 asks."""

    serial: int
    revoked_at: datetime
    reason: x509.ReasonFlags = x509.ReasonFlags.unspecified


_REASONS: Final[dict[x509.ReasonFlags, list[x509.Extension[x509.ExtensionType]]]] = {
    reason: []
    if reason is x509.ReasonFlags.unspecified
    else [x509.Extension(x509.CRLReason.oid, False, x509.CRLReason(reason))]
    for reason in x509.ReasonFlags
}


@dataclass(frozen=True)
class CrlWindow:
    """Which list, and how long it counts: `number` only grows, the dates are UTC in whole seconds."""

    number: int
    this_update: datetime
    next_update: datetime


def build_crl(
    *,
    entries: Iterable[RevokedEntry],
    window: CrlWindow,
    issuer: IssuerInfo,
    key: PrivateKey,
    scoped: bool = True,
) -> bytes:
    """The signed list as DER; its distribution point equals the one in the certificates it speaks of.

    A root's list is not `scoped`: `openssl verify -crl_check_all` seeks the root itself on it too, and a
    root has no distribution point to match.

    All entries go to the builder at once: adding them one at a time takes quadratic time.
    """
    builder = x509.CertificateRevocationListBuilder(
        issuer_name=issuer.certificate.subject,
        last_update=window.this_update.replace(microsecond=0),
        next_update=window.next_update.replace(microsecond=0),
        extensions=_extensions(window.number, issuer, scoped),
        revoked_certificates=[_revoked(entry) for entry in entries],
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def to_pem(der: bytes) -> bytes:
    """The list as PEM (RFC 7468 §6)."""
    body = base64.b64encode(der)
    lines = (body[start : start + 64] for start in range(0, len(body), 64))
    return b"\n".join([b"-----BEGIN X509 CRL-----", *lines, b"-----END X509 CRL-----", b""])


def _extensions(number: int, issuer: IssuerInfo, scoped: bool) -> list[x509.Extension[x509.ExtensionType]]:
    authority = x509.AuthorityKeyIdentifier(issuer.key_identifier, None, None)
    point = x509.IssuingDistributionPoint(
        full_name=[x509.UniformResourceIdentifier(issuer.crl_url)],
        relative_name=None,
        only_contains_user_certs=False,
        only_contains_ca_certs=False,
        only_some_reasons=None,
        indirect_crl=False,
        only_contains_attribute_certs=False,
    )
    extensions: list[x509.Extension[x509.ExtensionType]] = [
        x509.Extension(authority.oid, False, authority),
        x509.Extension(x509.CRLNumber.oid, False, x509.CRLNumber(number)),
    ]
    return [*extensions, x509.Extension(point.oid, True, point)] if scoped else extensions


def _revoked(entry: RevokedEntry) -> x509.RevokedCertificate:
    when = entry.revoked_at.astimezone(UTC).replace(microsecond=0, tzinfo=None)
    return x509.RevokedCertificateBuilder(entry.serial, when, _REASONS[entry.reason]).build()
