"""`cert_lint`: check issued certificates again, against the profile, their CA and their row."""

from datetime import datetime
from typing import Any, ClassVar, cast

from cryptography import x509
from cryptography.x509.oid import NameOID
from django.conf import settings

from certificates.models import Certificate
from certificates.pki.identity_extension import IdentityClaims, InvalidExtension
from certificates.pki.lint import is_issued_by, leaf_findings
from certificates.pki.x509 import (
    CertificateProfile,
    CertifiedAgent,
    LeafExpectation,
    PublicKey,
    Validity,
    read_claims,
)
from compliance.core.commands import ServiceCommand


class Command(ServiceCommand):
    help = (
        "Judge one certificate, or every active one, against the profile, its CA and its row; exit 6 when "
        "something is wrong."
    )
    takes_environment = True
    is_check = True
    arguments: ClassVar = {
        "--serial": {"help": "only this one"},
    }

    def run(self, *, now: datetime, **options: Any) -> list[dict[str, Any]]:
        if options["serial"]:
            found = Certificate.objects.with_serial_text(options["serial"])
            return [{"serial_number": found.serial_number, "findings": findings(found)}]
        active = Certificate.objects.active(now).select_related("authority").order_by("issued_at", "id")
        judged = ((row.serial_number, findings(row)) for row in active.iterator(chunk_size=1_000))
        return [{"serial_number": serial, "findings": found} for serial, found in judged if found]


def findings(row: Certificate) -> list[str]:
    profile = CertificateProfile(settings.OID_ARC)
    try:
        certificate = x509.load_pem_x509_certificate(row.certificate_pem.encode("ascii"))
        claims = read_claims(certificate, profile)
    except (ValueError, x509.ExtensionNotFound, InvalidExtension) as error:
        return [f"can't be read: {error}"]
    issuer, found = row.authority.as_issuer.for_shard(row.crl_shard), []
    if not is_issued_by(certificate, issuer):
        found.append("the signature is not the CA's")
    if f"{certificate.serial_number:040x}" != row.serial_number:
        found.append("the serial number differs from the row's")
    if Validity.of(certificate) != Validity(row.not_before, row.expires_at):
        found.append("the validity differs from the row's")
    if claims != IdentityClaims.of(row.claims):
        found.append("the claims differ from the row's")
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    base = row.authority.certificate_url.rpartition("/v1/ca/")[0]
    agent = CertifiedAgent(
        agent_id=row.agent_id,
        name=str(names[0].value) if names else "",
        resolver_url=f"{base}/1.0/identifiers/{claims.did}",
        claims=claims,
    )
    key, serial = cast("PublicKey", certificate.public_key()), int(row.serial_number, 16)
    return [*found, *leaf_findings(certificate, LeafExpectation(agent, key, serial, issuer, profile))]
