"""Linting before signing, after Boulder: a draft, signed with zeros, is judged and then compared."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import (
    AuthorityInformationAccessOID,
    ExtendedKeyUsageOID,
    ExtensionOID,
    SignatureAlgorithmOID,
)

from certificates.pki import MAX_LIFETIME
from certificates.pki.identity_extension import InvalidExtension
from certificates.pki.serials import environment_of
from certificates.pki.x509 import IssuerInfo, LeafExpectation, Validity, key_usage, read_claims, sign
from compliance.keys.adaptors import SignOnly

MAX_RESPONDER_LIFETIME: Final = timedelta(days=30)
SERIAL_BITS: Final = 159
AGENT_KEY_BITS: Final = 2048

WantedExtensions = Mapping[x509.ObjectIdentifier, tuple[bool, x509.ExtensionType]]


class LintError(Exception):
    """A certificate that must not be signed; `findings` says why."""

    def __init__(self, findings: list[str]) -> None:
        self.findings = findings
        super().__init__("; ".join(findings))


def leaf_findings(certificate: x509.Certificate, expected: LeafExpectation) -> list[str]:
    return [finding for check in CHECKS for finding in check(certificate, expected)]


def sign_linted(
    builder: x509.CertificateBuilder,
    key: rsa.RSAPrivateKey,
    issuer: IssuerInfo,
    judge: Callable[[x509.Certificate], Iterable[str]],
) -> x509.Certificate:
    """Judge a draft, sign and compare; raises `LintError`, and what `key` raises."""
    draft = sign(builder, DraftKey())
    if findings := list(judge(draft)):
        raise LintError(findings)
    certificate = sign(builder, key)
    if certificate.tbs_certificate_bytes != draft.tbs_certificate_bytes:
        raise LintError(["what was signed differs from what was judged"])
    if not is_issued_by(certificate, issuer):
        raise LintError(["the signature is not the issuer's"])
    return certificate


def is_issued_by(certificate: x509.Certificate, issuer: IssuerInfo) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer.certificate)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


class DraftKey(SignOnly, rsa.RSAPrivateKey):
    """A key that signs with zeros, so that nobody can take a draft for a certificate."""

    key_size = AGENT_KEY_BITS
    public_key = SignOnly.refuse

    def sign(self, *_: Any) -> bytes:
        return bytes(AGENT_KEY_BITS // 8)


def responder_findings(certificate: x509.Certificate, issuer: IssuerInfo, serial: int) -> Iterator[str]:
    """A responder's certificate may sign OCSP responses, nothing else, and not for long."""
    uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.OCSP_SIGNING])
    yield from _extension_findings(
        {extension.oid: extension for extension in certificate.extensions},
        {
            ExtensionOID.BASIC_CONSTRAINTS: (True, x509.BasicConstraints(ca=False, path_length=None)),
            ExtensionOID.KEY_USAGE: (True, key_usage("digital_signature")),
            ExtensionOID.EXTENDED_KEY_USAGE: (False, uses),
            ExtensionOID.OCSP_NO_CHECK: (False, x509.OCSPNoCheck()),
        },
    )
    if certificate.serial_number != serial or serial.bit_length() != SERIAL_BITS:
        yield "serial number is not the one chosen"
    if Validity.of(certificate).duration > MAX_RESPONDER_LIFETIME:
        yield "validity is too long for a certificate that can't be revoked"
    if certificate.issuer != issuer.certificate.subject:
        yield "issuer is not the CA's name"


def _basics(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    serial = certificate.serial_number
    if certificate.version is not x509.Version.v3:
        yield "version is not 3"
    if serial != expected.serial:
        yield "serial number differs from the one recorded"
    if serial.bit_length() != SERIAL_BITS:
        yield "serial number is not of 20 octets or not positive"
    if environment_of(serial).value != expected.agent.claims.environment:
        yield "serial number is of the other environment"
    if certificate.signature_algorithm_oid != SignatureAlgorithmOID.RSA_WITH_SHA256:
        yield "signature algorithm is not RSA with SHA-256"


def _validity(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    own, issuers = Validity.of(certificate), Validity.of(expected.issuer.certificate)
    if own.not_after <= own.not_before:
        yield "validity ends before it starts"
    if own.duration > MAX_LIFETIME:
        yield "validity exceeds 365 days"
    if own.not_before < issuers.not_before or own.not_after > issuers.not_after:
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
    if key == expected.issuer.public_key:
        yield "public key is the issuer's"


def _names(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    if certificate.subject != expected.agent.subject:
        yield "subject is not the agent's"
    if certificate.issuer != expected.issuer.certificate.subject:
        yield "issuer is not the CA's name"
    for attribute in certificate.subject:
        text = str(attribute.value)
        if not text.strip() or not text.isprintable() or len(text) > 64:
            yield f"subject attribute {attribute.oid.dotted_string} is empty, unprintable or too long"


def _extensions(certificate: x509.Certificate, expected: LeafExpectation) -> Iterator[str]:
    """The exact set of extensions, each with its criticality and value."""
    try:
        found = {extension.oid: extension for extension in certificate.extensions}
    except (ValueError, x509.DuplicateExtension) as error:
        yield f"extensions can't be read: {error}"
        return
    wanted = _leaf_extensions(expected)
    for oid in found.keys() - wanted.keys() - {expected.profile.identity_oid}:
        yield f"extension {oid.dotted_string} is not in the profile"
    yield from _extension_findings(found, wanted)


def _extension_findings(
    found: Mapping[x509.ObjectIdentifier, x509.Extension[Any]], wanted: WantedExtensions
) -> Iterator[str]:
    for oid, (critical, value) in wanted.items():
        if oid not in found:
            yield f"extension {oid.dotted_string} is missing"
        elif found[oid].critical is not critical or found[oid].value != value:
            yield f"extension {oid.dotted_string} has another value or criticality"


def _leaf_extensions(expected: LeafExpectation) -> WantedExtensions:
    """The profile written a second time, so that a mistake in the builder shows."""
    uri, issuer = x509.UniformResourceIdentifier, expected.issuer
    point = x509.DistributionPoint([uri(issuer.crl_url)], None, None, None)
    access = [x509.AccessDescription(AuthorityInformationAccessOID.CA_ISSUERS, uri(issuer.certificate_url))]
    if issuer.ocsp_url:
        access += [x509.AccessDescription(AuthorityInformationAccessOID.OCSP, uri(issuer.ocsp_url))]
    policy = x509.PolicyInformation(expected.profile.policy_oid, None)
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    subject_key = x509.SubjectKeyIdentifier.from_public_key(expected.public_key)
    authority_key = x509.AuthorityKeyIdentifier(issuer.key_identifier, None, None)
    name = x509.SubjectAlternativeName([uri(expected.agent.resolver_url)])
    return {
        ExtensionOID.BASIC_CONSTRAINTS: (True, x509.BasicConstraints(ca=False, path_length=None)),
        ExtensionOID.KEY_USAGE: (True, key_usage("digital_signature")),
        ExtensionOID.EXTENDED_KEY_USAGE: (False, x509.ExtendedKeyUsage(uses)),
        ExtensionOID.SUBJECT_KEY_IDENTIFIER: (False, subject_key),
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER: (False, authority_key),
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME: (False, name),
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
    if claims != expected.agent.claims:
        yield "identity extension says something else than the agent's profile"


CHECKS: Final = (_basics, _validity, _public_key, _names, _extensions, _identity)
