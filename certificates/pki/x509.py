"""The certificates of this service as pure functions (RFC 5280); dates have whole seconds."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, cast
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import AuthorityInformationAccessOID, ExtendedKeyUsageOID

from certificates.pki.identity_extension import IdentityClaims, decode, encode
from certificates.pki.names import agent_name

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

ONE_SECOND: Final = timedelta(seconds=1)
BACKDATE: Final = timedelta(minutes=5)
"""How far `notBefore` lies back, for verifiers whose clock is behind."""
KEY_USES: Final = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
ANY_POLICY: Final = x509.ObjectIdentifier("2.5.29.32.0")


@dataclass(frozen=True)
class CertificateProfile:
    """Properties common to all certificates of an installation; its OIDs lie under `oid_arc`."""

    oid_arc: str

    @property
    def identity_oid(self) -> x509.ObjectIdentifier:
        return x509.ObjectIdentifier(f"{self.oid_arc}.1")

    @property
    def policy_oid(self) -> x509.ObjectIdentifier:
        return x509.ObjectIdentifier(f"{self.oid_arc}.2")


@dataclass(frozen=True)
class CertifiedAgent:
    agent_id: UUID
    name: str
    resolver_url: str
    claims: IdentityClaims

    @property
    def subject(self) -> x509.Name:
        return agent_name(name=self.name, operator=self.claims.operator, agent_id=self.agent_id)


@dataclass(frozen=True)
class IssuerInfo:
    """A CA: its certificate, and the addresses in the certificates it issues; `ocsp_url` may be empty."""

    certificate: x509.Certificate
    certificate_url: str
    crl_url: str
    ocsp_url: str = ""

    def for_shard(self, shard: int | None) -> "IssuerInfo":
        """The CA as issuer of a certificate of that shard, whose CDP names the shard's list."""
        return self if shard is None else replace(self, crl_url=f"{self.crl_url}/{shard}")

    @property
    def public_key(self) -> PublicKey:
        return cast("PublicKey", self.certificate.public_key())

    @property
    def key_identifier(self) -> bytes:
        extension = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        return extension.value.digest


@dataclass(frozen=True)
class LeafExpectation:
    agent: CertifiedAgent
    public_key: PublicKey
    serial: int
    issuer: IssuerInfo
    profile: CertificateProfile


@dataclass(frozen=True)
class Validity:
    """From `not_before` to `not_after`, both included, in whole seconds UTC."""

    not_before: datetime
    not_after: datetime

    @classmethod
    def lasting(cls, duration: timedelta, *, now: datetime, within: "Validity | None" = None) -> "Validity":
        """`duration` in all, starting `BACKDATE` before `now`; cut to lie `within` the issuer's."""
        start = now.replace(microsecond=0) - BACKDATE
        end = start + duration - ONE_SECOND
        if within is None:
            return cls(start, end)
        return cls(max(start, within.not_before), min(end, within.not_after))

    @classmethod
    def of(cls, certificate: x509.Certificate) -> "Validity":
        return cls(certificate.not_valid_before_utc, certificate.not_valid_after_utc)

    @property
    def duration(self) -> timedelta:
        return self.not_after - self.not_before + ONE_SECOND


def authority_builder(
    *,
    name: x509.Name,
    public_key: PublicKey,
    serial: int,
    validity: Validity,
    issuer: IssuerInfo | None = None,
) -> x509.CertificateBuilder:
    """A CA that certifies agents alone, or, without an issuer, a root that may certify one level of CAs."""
    builder = _builder(name, issuer.certificate.subject if issuer else name, public_key, serial, validity)
    constraints = x509.BasicConstraints(ca=True, path_length=0 if issuer else 1)
    builder = builder.add_extension(constraints, critical=True)
    builder = builder.add_extension(key_usage("key_cert_sign", "crl_sign"), critical=True)
    if issuer:
        return _issued_by(builder.add_extension(_policy(ANY_POLICY), critical=False), issuer)
    own_key = x509.SubjectKeyIdentifier.from_public_key(public_key)
    return builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own_key), critical=False
    )


def leaf_builder(expected: LeafExpectation, *, validity: Validity) -> x509.CertificateBuilder:
    """An agent's certificate, for TLS client and server authentication and for signing messages."""
    agent, profile, issuer = expected.agent, expected.profile, expected.issuer.certificate.subject
    builder = _builder(agent.subject, issuer, expected.public_key, expected.serial, validity)
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    name = x509.UniformResourceIdentifier(agent.resolver_url)
    identity = x509.UnrecognizedExtension(profile.identity_oid, encode(agent.claims))
    builder = (
        _end_entity(builder, uses)
        .add_extension(x509.SubjectAlternativeName([name]), critical=False)
        .add_extension(_policy(profile.policy_oid), critical=False)
        .add_extension(identity, critical=False)
    )
    return _issued_by(builder, expected.issuer)


def responder_builder(
    *, name: x509.Name, public_key: PublicKey, serial: int, validity: Validity, issuer: IssuerInfo
) -> x509.CertificateBuilder:
    """A certificate that signs OCSP responses for its issuer (RFC 6960 §4.2.2.2)."""
    builder = _builder(name, issuer.certificate.subject, public_key, serial, validity)
    authority = x509.AuthorityKeyIdentifier(issuer.key_identifier, None, None)
    return (
        _end_entity(builder, [ExtendedKeyUsageOID.OCSP_SIGNING])
        .add_extension(authority, critical=False)
        .add_extension(x509.OCSPNoCheck(), critical=False)
    )


def sign(builder: x509.CertificateBuilder, key: rsa.RSAPrivateKey) -> x509.Certificate:
    """Sign with SHA-256; raises what the key raises (`Unavailable` in the HSM)."""
    return builder.sign(key, hashes.SHA256())


def read_claims(certificate: x509.Certificate, profile: CertificateProfile) -> IdentityClaims:
    """The claims that a certificate states; raises `InvalidExtension` or `x509.ExtensionNotFound`."""
    extension = certificate.extensions.get_extension_for_oid(profile.identity_oid)
    return decode(extension.value.public_bytes())


def key_usage(*granted: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in granted for name in KEY_USES})


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: PublicKey, serial: int, validity: Validity
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(public_key)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(serial)
        .not_valid_before(validity.not_before)
        .not_valid_after(validity.not_after)
        .add_extension(identifier, critical=False)
    )


def _end_entity(
    builder: x509.CertificateBuilder, uses: list[x509.ObjectIdentifier]
) -> x509.CertificateBuilder:
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    )


def _issued_by(builder: x509.CertificateBuilder, issuer: IssuerInfo) -> x509.CertificateBuilder:
    uri, method = x509.UniformResourceIdentifier, AuthorityInformationAccessOID
    access = [x509.AccessDescription(method.CA_ISSUERS, uri(issuer.certificate_url))]
    if issuer.ocsp_url:
        access.append(x509.AccessDescription(method.OCSP, uri(issuer.ocsp_url)))
    point = x509.DistributionPoint([uri(issuer.crl_url)], None, None, None)
    authority = x509.AuthorityKeyIdentifier(issuer.key_identifier, None, None)
    return (
        builder.add_extension(authority, critical=False)
        .add_extension(x509.CRLDistributionPoints([point]), critical=False)
        .add_extension(x509.AuthorityInformationAccess(access), critical=False)
    )


def _policy(oid: x509.ObjectIdentifier) -> x509.CertificatePolicies:
    return x509.CertificatePolicies([x509.PolicyInformation(oid, None)])
