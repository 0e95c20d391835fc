"""An issued certificate judged again: against the profile, its CA and its row."""

from collections.abc import Iterator
from dataclasses import replace

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import AuthorityInformationAccessOID, NameOID

from certificates.authorities import issuer_info, profile
from certificates.identity_extension import IdentityClaims, InvalidExtension
from certificates.lint import LeafExpectation, LintError, lint_leaf
from certificates.models import Certificate
from certificates.x509 import AgentIdentity, IssuerInfo, PublicKey, read_claims
from compliance import environments


def findings(row: Certificate) -> list[str]:
    """What is wrong with a stored certificate; empty when all is well."""
    try:
        certificate = x509.load_pem_x509_certificate(row.certificate_pem.encode("ascii"))
        claims = read_claims(certificate, profile())
    except (ValueError, x509.ExtensionNotFound, InvalidExtension) as error:
        return [f"can't be read: {error}"]
    issuer = _issuer(row, certificate)
    return [
        *_signature(certificate, issuer),
        *_row(row, certificate, claims),
        *_profile(row, certificate, claims, issuer),
    ]


def _issuer(row: Certificate, certificate: x509.Certificate) -> IssuerInfo:
    """The CA as it was for this certificate, which may be older than the CA's OCSP responder."""
    issuer = issuer_info(row.authority).for_shard(row.crl_shard)
    try:
        access = certificate.extensions.get_extension_for_class(x509.AuthorityInformationAccess).value
    except x509.ExtensionNotFound:
        return issuer
    names_ocsp = any(item.access_method == AuthorityInformationAccessOID.OCSP for item in access)
    return issuer if names_ocsp else replace(issuer, ocsp_url="")


def _signature(certificate: x509.Certificate, issuer: IssuerInfo) -> Iterator[str]:
    try:
        certificate.verify_directly_issued_by(issuer.certificate)
    except (InvalidSignature, ValueError, TypeError):
        yield "the signature is not the CA's"


def _row(row: Certificate, certificate: x509.Certificate, claims: IdentityClaims) -> Iterator[str]:
    if f"{certificate.serial_number:040x}" != row.serial_number:
        yield "the serial number differs from the row's"
    if (certificate.not_valid_before_utc, certificate.not_valid_after_utc) != (
        row.not_before,
        row.expires_at,
    ):
        yield "the validity differs from the row's"
    actions = row.claims["permitted_actions"]
    stored = IdentityClaims(
        **{**row.claims, "permitted_actions": None if actions is None else tuple(actions)}
    )
    if claims != stored:
        yield "the claims differ from the row's"


def _profile(
    row: Certificate, certificate: x509.Certificate, claims: IdentityClaims, issuer: IssuerInfo
) -> list[str]:
    """By the linter of issuance, which is told what the certificate says of its agent."""
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    base = row.authority.certificate_url.rpartition("/v1/ca/")[0]
    identity = AgentIdentity(
        agent_id=row.agent_id,
        name=str(names[0].value) if names else "",
        operator=claims.operator,
        did=claims.did,
        environment=environments.current(),
        resolver_url=f"{base}/1.0/identifiers/{claims.did}",
        model=claims.model,
        model_version=claims.model_version,
        model_hash=claims.model_hash,
        permitted_actions=claims.permitted_actions,
    )
    key: PublicKey = certificate.public_key()  # type: ignore[assignment]
    expected = LeafExpectation(identity, key, int(row.serial_number, 16), issuer, profile())
    try:
        lint_leaf(certificate, expected)
    except LintError as error:
        return list(error.findings)
    return []
