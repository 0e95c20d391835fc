"""Certificates of agents, judged by a pinned root: chain, validity, identity and revocation."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, Self, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtensionOID, NameOID

from agentid.errors import NotValid, Reason
from agentid.verify.x509.identity import Identity, read_identity

E = TypeVar("E", bound=x509.ExtensionType)
IDENTITY_OID: Final = "1.3.6.1.4.1.32473.1.1"
"""`OID_ARC`.1 of the service; another arc of its operator is given to `TrustedAuthorities`."""
STRONG: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
TEST_BIT: Final = 1 << 157
MAX_CHAIN: Final = 4
KNOWN: Final = frozenset(
    {
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.CERTIFICATE_POLICIES,
    }
)
"""Extensions that may be critical, since they are looked at, or say nothing that matters here."""


@contextmanager
def parsing(what: str) -> Iterator[None]:
    """Raise NotValid for what cannot be read; also a decorator."""
    try:
        yield
    except UnsupportedAlgorithm:
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, what) from None
    except (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        raise NotValid(Reason.MALFORMED, f"{what} that cannot be read") from None


class RevocationSource(Protocol):
    """What knows whether a certificate was revoked: `RevocationLists` or an `OcspAnswer`."""

    def check(self, certificate: x509.Certificate, *, issuer: x509.Certificate, now: datetime) -> None:
        """Raise NotValid (revoked), or another reason if the source cannot tell."""


@dataclass(frozen=True)
class TrustedAuthorities:
    """The roots that are trusted, for one environment, and the CAs that they may have certified.

    Only roots are trusted; a CA among `intermediates` counts if a root certified it.
    """

    roots: tuple[x509.Certificate, ...]
    intermediates: tuple[x509.Certificate, ...] = ()
    environment: str = "live"
    identity_oid: str = IDENTITY_OID

    @classmethod
    def of_pem(cls, roots: bytes | str, chain: bytes | str = b"", **more: Any) -> Self:
        """Of roots that were pinned earlier, and the chain that `GET /v1/ca` gives as PEM."""
        return cls(tuple(_pem(roots)), tuple(_pem(chain)) if chain else (), **more)


@dataclass(frozen=True)
class VerifiedCertificate:
    """A certificate of an agent that stands under a trusted root."""

    serial_number: str
    agent_id: str
    identity: Identity
    not_after: datetime
    certificate: x509.Certificate = field(repr=False)
    issuer: x509.Certificate = field(repr=False)


@parsing("a certificate")
def verify_certificate(
    pem: bytes | str, *, trusted: TrustedAuthorities, revocation: RevocationSource | None, now: datetime
) -> VerifiedCertificate:
    """Check an agent's certificate. Raises: NotValid.

    With `revocation` None it is not asked whether the certificate was revoked.
    """
    certificate, *more = _pem(pem)
    if more:
        raise NotValid(Reason.MALFORMED, "more than one certificate")
    issuer = _issuer(certificate, trusted, now)
    constraints, usage = _usage(certificate, now)
    if constraints.ca or usage is None or not usage.digital_signature:
        raise NotValid(Reason.MALFORMED, "not an agent's certificate")
    names = certificate.subject.get_attributes_for_oid(NameOID.SERIAL_NUMBER)
    if len(names) != 1:
        raise NotValid(Reason.MALFORMED, "no agent's id in the subject")
    identity = _identity(certificate, trusted)
    if revocation is not None:
        revocation.check(certificate, issuer=issuer, now=now)
    return VerifiedCertificate(
        serial_number=f"{certificate.serial_number:040x}",
        agent_id=str(names[0].value),
        identity=identity,
        not_after=certificate.not_valid_after_utc,
        certificate=certificate,
        issuer=issuer,
    )


def is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    """Whether the issuer's key signed the certificate under the issuer's name, with a strong hash."""
    try:
        certificate.verify_directly_issued_by(issuer)
        return isinstance(certificate.signature_hash_algorithm, STRONG)
    except (InvalidSignature, ValueError, TypeError, x509.InvalidVersion):
        return False


def check_period(certificate: x509.Certificate, now: datetime) -> None:
    """Raise NotValid (not_yet_valid, expired); both ends are included."""
    if now < certificate.not_valid_before_utc:
        raise NotValid(Reason.NOT_YET_VALID)
    if now.replace(microsecond=0) > certificate.not_valid_after_utc:
        raise NotValid(Reason.EXPIRED)


def _issuer(certificate: x509.Certificate, trusted: TrustedAuthorities, now: datetime) -> x509.Certificate:
    """The CA that issued the certificate, after its chain was checked up to a root."""
    issuer = certificate
    first: x509.Certificate | None = None
    for below in range(MAX_CHAIN):
        candidates = (*trusted.roots, *trusted.intermediates)
        others = (each for each in candidates if each != issuer)
        found = next((each for each in others if is_issued_by(issuer, each)), None)
        if found is None:
            break
        constraints, usage = _usage(found, now)
        if not constraints.ca or usage is None or not usage.key_cert_sign:
            raise NotValid(Reason.NOT_AN_AUTHORITY)
        if constraints.path_length is not None and below > constraints.path_length:
            raise NotValid(Reason.NOT_AN_AUTHORITY, "the chain is longer than the CA allows")
        first = first or found
        if found in trusted.roots:
            return first
        issuer = found
    raise NotValid(Reason.UNTRUSTED_ISSUER, "the chain leads to no trusted root")


def _usage(
    certificate: x509.Certificate, now: datetime
) -> tuple[x509.BasicConstraints, x509.KeyUsage | None]:
    """What a certificate may be used for, if it counts now.

    Raises: NotValid, also for a critical extension that nothing here looks at (RFC 5280 §4.2).
    """
    check_period(certificate, now)
    for each in certificate.extensions:
        if each.critical and each.oid not in KNOWN:
            raise NotValid(Reason.UNKNOWN_EXTENSION, each.oid.dotted_string)
    constraints = extension(certificate, x509.BasicConstraints)
    if constraints is None:
        constraints = x509.BasicConstraints(ca=False, path_length=None)
    return constraints, extension(certificate, x509.KeyUsage)


def _identity(certificate: x509.Certificate, trusted: TrustedAuthorities) -> Identity:
    oid = x509.ObjectIdentifier(trusted.identity_oid)
    values = [each.value for each in certificate.extensions if each.oid == oid]
    if len(values) != 1 or not isinstance(values[0], x509.UnrecognizedExtension):
        raise NotValid(Reason.MALFORMED, "no identity in the certificate")
    identity = read_identity(values[0].value)
    of_serial = "test" if certificate.serial_number & TEST_BIT else "live"
    if {identity.environment, of_serial} != {trusted.environment}:
        raise NotValid(Reason.WRONG_ENVIRONMENT, f"a certificate of {identity.environment or of_serial}")
    return identity


def extension(of: x509.Certificate | x509.CertificateRevocationList, kind: type[E]) -> E | None:
    return next((each.value for each in of.extensions if isinstance(each.value, kind)), None)


@parsing("PEM")
def _pem(pem: bytes | str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem.encode() if isinstance(pem, str) else pem)
