"""The profile checked before a certificate is signed: a draft without a signature is built, read back and
judged.

After Boulder: the real key signs only what has passed, and what was signed is compared with what was judged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import (
    AuthorityInformationAccessOID,
    ExtendedKeyUsageOID,
    ExtensionOID,
    SignatureAlgorithmOID,
)

from certificates.blank_keys import blank_like
from certificates.identity_extension import InvalidExtension
from certificates.serials import environment_of
from certificates.x509 import (
    AgentIdentity,
    CertificateProfile,
    IssuerInfo,
    PrivateKey,
    PublicKey,
    key_usage,
    read_claims,
    sign,
)

MAX_LIFETIME: Final = timedelta(days=365)
MAX_RESPONDER_LIFETIME: Final = timedelta(days=30)
MAX_SERIAL_OCTETS: Final = 20
AGENT_KEY_BITS: Final = 2048
SIGNATURES: Final = (SignatureAlgorithmOID.RSA_WITH_SHA256, SignatureAlgorithmOID.ECDSA_WITH_SHA256)


class LintError(Exception):
    """A certificate that must not be signed; `findings` says why."""

    def __init__(self, findings: tuple[str, ...]) -> None:
        self.findings = findings
        super().__init__("; ".join(findings))


@dataclass(frozen=True)
class LeafExpectation:
    """What an agent's certificate must say, and who issues it."""

    identity: AgentIdentity
    public_key: PublicKey
    serial: int
    issuer: IssuerInfo
    profile: CertificateProfile


def sign_linted(
    builder: x509.CertificateBuilder, *, key: PrivateKey, expected: LeafExpectation
) -> x509.Certificate:
    """Lint, sign, and compare; raises `LintError`, and what `key` raises."""
    draft = sign(builder, blank_like(key))
    lint_leaf(draft, expected)
    certificate = sign(builder, key)
    if certificate.tbs_certificate_bytes != draft.tbs_certificate_bytes:
        raise LintError(("what was signed differs from what was judged",))
    try:
        certificate.verify_directly_issued_by(expected.issuer.certificate)
    except (InvalidSignature, ValueError, TypeError) as error:
        raise LintError(("the signature is not the issuer's",)) from error
    return certificate


def sign_responder(
    builder: x509.CertificateBuilder, *, key: PrivateKey, issuer: IssuerInfo, serial: int
) -> x509.Certificate:
    """As `sign_linted`, for an OCSP responder's certificate."""
    draft = sign(builder, blank_like(key))
    findings = tuple(_responder(draft, issuer, serial))
    if findings:
        raise LintError(findings)
    certificate = sign(builder, key)
    if certificate.tbs_certificate_bytes != draft.tbs_certificate_bytes:
        raise LintError(("what was signed differs from what was judged",))
    certificate.verify_directly_issued_by(issuer.certificate)
    return certificate


def _responder(certificate: x509.Certificate, issuer: IssuerInfo, serial: int) -> Iterator[str]:
    """It may sign OCSP answers and nothing else, and not for long."""
    extensions = {extension.oid: extension for extension in certificate.extensions}
    wanted: dict[x509.ObjectIdentifier, tuple[bool, x509.ExtensionType]] = {
        ExtensionOID.BASIC_CONSTRAINTS: (True, x509.BasicConstraints(ca=False, path_length=None)),
        ExtensionOID.KEY_USAGE: (True, key_usage(digital_signature=True)),
        ExtensionOID.EXTENDED_KEY_USAGE: (False, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.OCSP_SIGNING])),
        ExtensionOID.OCSP_NO_CHECK: (False, x509.OCSPNoCheck()),
    }
    for oid, (critical, value) in wanted.items():
        if oid not in extensions or (extensions[oid].critical, extensions[oid].value) != (critical, value):
            yield f"extension {oid.dotted_string} is missing or has another value or criticality"
    if certificate.serial_number != serial or serial.bit_length() != MAX_SERIAL_OCTETS * 8 - 1:
        yield "serial number is not the one chosen"
    if certificate.not_valid_after_utc - certificate.not_valid_before_utc > MAX_RESPONDER_LIFETIME:
        yield "validity is too long for a certificate that can't be revoked"
    if certificate.issuer != issuer.certificate.subject:
        yield "issuer is not the CA's name"


def lint_leaf(certificate: x509.Certificate, expected: LeafExpectation) -> None:
    """Judge an agent's certificate against the profile; raises `LintError` with every finding."""
    findings = tuple(finding for check in CHECKS for finding in check(certificate, expected))
    if findings:
        raise LintError(findings)


def _basics(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    serial = certificate.serial_number
    if certificate.version is not x509.Version.v3:
        yield "version is not 3"
    if serial != expected.serial:
        yield "serial number differs from the one recorded"
    if serial.bit_length() != MAX_SERIAL_OCTETS * 8 - 1:
        yield "serial number is not of 20 octets or not positive"
    if environment_of(serial) is not expected.identity.environment:
        yield "serial number is of the other environment"
    if certificate.signature_algorithm_oid not in SIGNATURES:
        yield "signature algorithm is not RSA or ECDSA with SHA-256"


def _validity(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    issuer = expected.issuer.certificate
    if end <= start:
        yield "validity ends before it starts"
    if end - start + timedelta(seconds=1) > MAX_LIFETIME:
        yield "validity exceeds 365 days"
    if start < issuer.not_valid_before_utc or end > issuer.not_valid_after_utc:
        yield "validity is not within the issuer's"


def _public_key(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    key = certificate.public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        yield "public key is not RSA"
        return
    numbers = key.public_numbers()
    if key.key_size != AGENT_KEY_BITS or numbers.e != 65537 or numbers.n % 2 == 0:
        yield "public key is not RSA-2048 with exponent 65537"
    if key != expected.public_key:
        yield "public key is not the agent's"
    if _spki(key) == _spki(expected.issuer.public_key):
        yield "public key is the issuer's"


def _names(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    if certificate.subject != expected.identity.subject:
        yield "subject is not the agent's"
    if certificate.issuer != expected.issuer.certificate.subject:
        yield "issuer is not the CA's name"
    for attribute in certificate.subject:
        text = str(attribute.value)
        if not text.strip() or not text.isprintable() or len(text) > 64:
            yield f"subject attribute {attribute.oid.dotted_string} is empty, unprintable or too long"


def _extensions(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    """The right set, each with the right criticality and value; duplicates make the reading fail."""
    try:
        found = {extension.oid: extension for extension in certificate.extensions}
    except (ValueError, x509.DuplicateExtension) as error:
        yield f"extensions can't be read: {error}"
        return
    wanted = _wanted_extensions(certificate, expected)
    for oid in found.keys() - wanted.keys() - {expected.profile.identity_oid}:
        yield f"extension {oid.dotted_string} is not in the profile"
    for oid, (critical, value) in wanted.items():
        if oid not in found:
            yield f"extension {oid.dotted_string} is missing"
        elif found[oid].critical is not critical or found[oid].value != value:
            yield f"extension {oid.dotted_string} has another value or criticality"


def _wanted_extensions(
    certificate: x509.Certificate, expected: LeafExpectation
) -> dict[x509.ObjectIdentifier, tuple[bool, x509.ExtensionType]]:
    """Written out apart from the builder, so that a slip in either shows."""
    uri, issuer = x509.UniformResourceIdentifier, expected.issuer
    point = x509.DistributionPoint([uri(issuer.crl_url)], None, None, None)
    access = [x509.AccessDescription(AuthorityInformationAccessOID.CA_ISSUERS, uri(issuer.certificate_url))]
    if issuer.ocsp_url:
        access += [x509.AccessDescription(AuthorityInformationAccessOID.OCSP, uri(issuer.ocsp_url))]
    policy = x509.PolicyInformation(expected.profile.policy_oid, None)
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    subject_key = x509.SubjectKeyIdentifier.from_public_key(expected.public_key)
    return {
        ExtensionOID.BASIC_CONSTRAINTS: (True, x509.BasicConstraints(ca=False, path_length=None)),
        ExtensionOID.KEY_USAGE: (True, key_usage(digital_signature=True)),
        ExtensionOID.EXTENDED_KEY_USAGE: (False, x509.ExtendedKeyUsage(uses)),
        ExtensionOID.SUBJECT_KEY_IDENTIFIER: (False, subject_key),
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER: (
            False,
            x509.AuthorityKeyIdentifier(issuer.key_identifier, None, None),
        ),
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME: (
            False,
            x509.SubjectAlternativeName([uri(expected.identity.resolver_url)]),
        ),
        ExtensionOID.CERTIFICATE_POLICIES: (False, x509.CertificatePolicies([policy])),
        ExtensionOID.CRL_DISTRIBUTION_POINTS: (False, x509.CRLDistributionPoints([point])),
        ExtensionOID.AUTHORITY_INFORMATION_ACCESS: (False, x509.AuthorityInformationAccess(access)),
    }


def _identity(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    try:
        claims = read_claims(certificate, expected.profile)
        extension = certificate.extensions.get_extension_for_oid(expected.profile.identity_oid)
    except (InvalidExtension, x509.ExtensionNotFound, ValueError) as error:
        yield f"identity extension can't be read: {error}"
        return
    if extension.critical:
        yield "identity extension is critical"
    if claims != expected.identity.claims:
        yield "identity extension says something else than the agent's profile"


CHECKS: Final[tuple[Callable[[x509.Certificate, LeafExpectation], Iterator[str]], ...]] = (
    _basics,
    _validity,
    _public_key,
    _names,
    _extensions,
    _identity,
)


def _spki(key: PublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
