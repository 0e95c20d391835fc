"""Stored certificates checked again: against the profile, their CA and their row."""

from collections.abc import Iterator
from dataclasses import replace

from cryptography import x509
from cryptography.x509.oid import AuthorityInformationAccessOID, NameOID

from certificates.authorities import issuer_info, profile
from certificates.models import Certificate
from certificates.pki.identity_extension import IdentityClaims, InvalidExtension
from certificates.pki.lint import LeafExpectation, is_issued_by, leaf_findings
from certificates.pki.x509 import CertifiedAgent, IssuerInfo, PublicKey, Validity, read_claims


def findings(row: Certificate) -> list[str]:
    """What is wrong with a stored certificate; empty when all is well."""
    try:
        certificate = x509.load_pem_x509_certificate(row.certificate_pem.encode("ascii"))
        claims = read_claims(certificate, profile())
    except (ValueError, x509.ExtensionNotFound, InvalidExtension) as error:
        return [f"can't be read: {error}"]
    issuer = _issuer(row, certificate)
    found = [] if is_issued_by(certificate, issuer) else ["the signature is not the CA's"]
    return [
        *found,
        *_row_findings(row, certificate, claims),
        *leaf_findings(certificate, _expectation(row, certificate, claims, issuer)),
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


def _row_findings(row: Certificate, certificate: x509.Certificate, claims: IdentityClaims) -> Iterator[str]:
    if f"{certificate.serial_number:040x}" != row.serial_number:
        yield "the serial number differs from the row's"
    if Validity.of(certificate) != Validity(row.not_before, row.expires_at):
        yield "the validity differs from the row's"
    if claims != IdentityClaims.of(row.claims):
        yield "the claims differ from the row's"


def _expectation(
    row: Certificate, certificate: x509.Certificate, claims: IdentityClaims, issuer: IssuerInfo
) -> LeafExpectation:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    base = row.authority.certificate_url.rpartition("/v1/ca/")[0]
    agent = CertifiedAgent(
        agent_id=row.agent_id,
        name=str(names[0].value) if names else "",
        resolver_url=f"{base}/1.0/identifiers/{claims.did}",
        claims=claims,
    )
    key: PublicKey = certificate.public_key()  # type: ignore[assignment]
    return LeafExpectation(agent, key, int(row.serial_number, 16), issuer, profile())
