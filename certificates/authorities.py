"""The CAs of an environment: made once, then asked to sign."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings
from django.db import connections

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from certificates.errors import AuthorityNotFound, RootTooShort, RotatedRecently
from certificates.lint import MAX_LIFETIME
from certificates.models import AuthorityRole, CertificateAuthority
from certificates.names import authority_name, certificate_base_url
from certificates.serials import format_serial, new_serial
from certificates.x509 import (
    CertificateProfile,
    IssuerInfo,
    PrivateKey,
    Validity,
    issuing_builder,
    root_builder,
    sign,
)
from compliance import environments
from compliance.keys import KeyRef, backend_for, private_key

ROOT_LIFETIME: Final = timedelta(days=20 * 365)
ISSUING_LIFETIME: Final = timedelta(days=10 * 365)
CA_KEY_BITS: Final = 3072
BOOTSTRAP_LOCK: Final = 0x43415F494E4954  # "CA_INIT"
ROTATION_REST: Final = timedelta(days=1)
"""A second rotation this soon is a command run twice."""
ACTOR: Final = Actor.system("ca_init")


def base_url() -> str:
    """The service's address as it stands in certificates."""
    return certificate_base_url(settings.BASE_URL)


def profile() -> CertificateProfile:
    """The installation's certificate profile."""
    return CertificateProfile(settings.OID_ARC)


def issuer_info(authority: CertificateAuthority) -> IssuerInfo:
    """A CA as the pure modules know it."""
    certificate = x509.load_der_x509_certificate(bytes(authority.certificate_der))
    return IssuerInfo(certificate, authority.certificate_url, authority.crl_url, authority.ocsp_url)


def signing_key(authority: CertificateAuthority) -> PrivateKey:
    """The CA's private key in the HSM; 503 errors."""
    return private_key(environments.current(), authority.key_uri)


def ensure_chain(*, now: datetime) -> CertificateAuthority:
    """The issuing CA in service, made together with its root if there is none; safe to repeat and to race."""
    with environments.atomic():
        _lock_bootstrap()
        found = CertificateAuthority.objects.in_service().filter(role=AuthorityRole.ISSUING).first()
        if found is not None:
            return found
        root = CertificateAuthority.objects.in_service().filter(role=AuthorityRole.ROOT).first()
        return _make_issuing(root or _make_root(now, ACTOR), now, ACTOR)


@dataclass(frozen=True)
class Rotation:
    """The CA that issues from now on, and the one it took over from."""

    successor: CertificateAuthority
    predecessor: CertificateAuthority


def rotate(*, actor: Actor, now: datetime, force: bool = False, with_root: bool = False) -> Rotation:
    """A new issuing CA under the root (or `with_root`, under a new one); the old one only signs lists.

    One transaction: a crash leaves the old CA in service, and at worst a key in the HSM that no row names.
    Raises `AuthorityNotFound` before `ca_init`, `RotatedRecently` within a day unless `force`,
    `RootTooShort`, and 503 errors of the HSM.
    """
    with environments.atomic():
        _lock_bootstrap()
        in_service = {ca.role: ca for ca in CertificateAuthority.objects.in_service().locked()}
        if AuthorityRole.ISSUING not in in_service:
            raise AuthorityNotFound("There is no issuing CA to rotate; run ca_init")
        old, root = in_service[AuthorityRole.ISSUING], in_service[AuthorityRole.ROOT]
        if not force and now < old.created_at + ROTATION_REST:
            raise RotatedRecently()
        if with_root:
            _retire(root, actor, now)
            root = _make_root(now, actor)
        elif root.not_after < now + MAX_LIFETIME:
            raise RootTooShort()
        _retire(old, actor, now)
        return Rotation(successor=_make_issuing(root, now, actor), predecessor=old)


def _retire(authority: CertificateAuthority, actor: Actor, now: datetime) -> None:
    authority.retired_at = now
    authority.save(update_fields=["retired_at"])
    _audit(authority, AuditAction.CA_ROTATED, "rotated out of service", actor, now)


def _lock_bootstrap() -> None:
    with connections[environments.current().alias].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [BOOTSTRAP_LOCK])


def _make_root(now: datetime, actor: Actor) -> CertificateAuthority:
    key, serial = _generate("ca-root"), new_serial(environments.current())
    builder = root_builder(
        name=_name("Root CA", now),
        public_key=key.public_key,
        serial=serial,
        validity=Validity.lasting(ROOT_LIFETIME, now=now),
    )
    certificate = sign(builder, private_key(environments.current(), key.uri))
    return _store(AuthorityRole.ROOT, None, key, certificate, actor, now)


def _make_issuing(root: CertificateAuthority, now: datetime, actor: Actor) -> CertificateAuthority:
    key, serial = _generate("ca-issuing"), new_serial(environments.current())
    issuer = issuer_info(root)
    builder = issuing_builder(
        name=_name("Issuing CA", now),
        public_key=key.public_key,
        serial=serial,
        validity=Validity.lasting(ISSUING_LIFETIME, now=now, within=Validity.of(issuer.certificate)),
        issuer=issuer,
    )
    certificate = sign(builder, signing_key(root))
    certificate.verify_directly_issued_by(issuer.certificate)
    return _store(AuthorityRole.ISSUING, root, key, certificate, actor, now)


def _generate(label: str) -> KeyRef:
    return backend_for(environments.current()).generate_rsa(CA_KEY_BITS, label=label)


def _name(kind: str, now: datetime) -> x509.Name:
    """Names tell environments and generations apart, so that no verifier mixes up two CAs."""
    environment = environments.current().value.title()
    return authority_name(
        organization=settings.SERVICE_TITLE, common_name=f"{environment} {kind} {now:%Y%m%d%H%M%S}"
    )


def _store(
    role: AuthorityRole,
    parent: CertificateAuthority | None,
    key: KeyRef,
    certificate: x509.Certificate,
    actor: Actor,
    now: datetime,
) -> CertificateAuthority:
    serial = format_serial(certificate.serial_number)
    authority = CertificateAuthority.objects.create(
        role=role,
        parent=parent,
        common_name=str(certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value),
        serial_number=serial,
        key_uri=key.uri,
        certificate_der=certificate.public_bytes(Encoding.DER),
        certificate_url=f"{base_url()}/v1/ca/{serial}",
        crl_url=f"{base_url()}/v1/crl/{serial}",
        ocsp_url=f"{base_url()}/v1/ocsp" if role == AuthorityRole.ISSUING else "",
        crl_shards=settings.CRL_SHARDS if role == AuthorityRole.ISSUING else 0,
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        created_at=now,
    )
    _audit(authority, AuditAction.CA_CREATED, "created", actor, now)
    return authority


def _audit(
    authority: CertificateAuthority, action: AuditAction, verb: str, actor: Actor, now: datetime
) -> None:
    auditlog.record(
        tenant_id=SERVICE_TENANT_ID,
        action=action,
        affected_id=authority.id,
        description=f"{authority.common_name} {verb}",
        metadata={"role": authority.role, "serial_number": authority.serial_number},
        actor=actor,
        now=now,
    )
