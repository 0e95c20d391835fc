"""The CAs of an environment: creation and rotation."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, cast

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.errors import AuthorityNotFound, RootTooShort, RotatedRecently
from certificates.issuing import key_pool, wrapped_keys
from certificates.lists import publication
from certificates.models import AuthorityRole, CertificateAuthority
from certificates.ocsp import responders
from certificates.pki import MAX_LIFETIME
from certificates.pki.names import authority_name, certificate_base_url
from certificates.pki.serials import format_serial, new_serial
from certificates.pki.x509 import Validity, issuing_builder, root_builder, sign
from compliance.core import environments
from compliance.keys.base import KeyRef, KeyStorage
from compliance.keys.registry import backend_for, private_key, rsa_private_key
from compliance.stores import sql

ROOT_LIFETIME: Final = timedelta(days=20 * 365)
ISSUING_LIFETIME: Final = timedelta(days=10 * 365)
CA_KEY_BITS: Final = 3072
BOOTSTRAP_LOCK: Final = 0x43415F494E4954  # "CA_INIT"
ROTATION_REST: Final = timedelta(days=1)
"""A second rotation within this time is taken for a command run twice."""
ACTOR: Final = Actor.system("ca_init")


def bootstrap(*, now: datetime) -> CertificateAuthority:
    """The issuing CA of the current environment, made with its root and first lists if there is none.

    So is the wrapping key, where agents' keys are wrapped. Safe to repeat and in parallel.
    """
    if key_pool.storage() is KeyStorage.WRAPPED:
        wrapped_keys.ensure(actor=ACTOR, now=now)
    with environments.atomic():
        _lock_bootstrap()
        in_service = {ca.role: ca for ca in CertificateAuthority.objects.in_service()}
        issuing = in_service.get(AuthorityRole.ISSUING)
        if issuing is None:
            root = in_service.get(AuthorityRole.ROOT) or _make_root(now, ACTOR)
            issuing = _make_issuing(root, now, ACTOR)
    _put_to_work(ACTOR, now)
    return issuing


@dataclass(frozen=True)
class Rotation:
    successor: CertificateAuthority
    predecessor: CertificateAuthority


def rotate(*, actor: Actor, now: datetime, force: bool = False, with_root: bool = False) -> Rotation:
    """Replace the issuing CA by a new one under the root, or under a new root `with_root`; publish its lists.

    A crash leaves the old CA in service, and at worst an unused key in the HSM. Raises `AuthorityNotFound`
    before `ca_init`, `RotatedRecently` within a day unless `force`, and `RootTooShort`.
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
        rotation = Rotation(successor=_make_issuing(root, now, actor), predecessor=old)
    _put_to_work(actor, now)
    return rotation


def _put_to_work(actor: Actor, now: datetime) -> None:
    publication.publish_due(actor=actor, now=now)
    responders.maintain(actor=actor, now=now)


def _retire(authority: CertificateAuthority, actor: Actor, now: datetime) -> None:
    authority.retired_at = now
    authority.save(update_fields=["retired_at"])
    _audit(authority, AuditAction.CA_ROTATED, "rotated out of service", actor, now)


def _lock_bootstrap() -> None:
    sql.query("SELECT pg_advisory_xact_lock(%s)", [BOOTSTRAP_LOCK])


def _make_root(now: datetime, actor: Actor) -> CertificateAuthority:
    key, serial = _generate("ca-root"), new_serial(environments.current())
    name, validity = _name("Root CA", now), Validity.lasting(ROOT_LIFETIME, now=now)
    builder = root_builder(name=name, public_key=key.public_key, serial=serial, validity=validity)
    own_key = cast("rsa.RSAPrivateKey", private_key(environments.current(), key.uri))
    certificate = sign(builder, own_key)
    return _store(AuthorityRole.ROOT, None, key, certificate, actor, now)


def _make_issuing(root: CertificateAuthority, now: datetime, actor: Actor) -> CertificateAuthority:
    key, serial = _generate("ca-issuing"), new_serial(environments.current())
    issuer, name = root.as_issuer, _name("Issuing CA", now)
    validity = Validity.lasting(ISSUING_LIFETIME, now=now, within=Validity.of(issuer.certificate))
    builder = issuing_builder(
        name=name, public_key=key.public_key, serial=serial, validity=validity, issuer=issuer
    )
    certificate = sign(builder, rsa_private_key(root.key_uri))
    certificate.verify_directly_issued_by(issuer.certificate)
    return _store(AuthorityRole.ISSUING, root, key, certificate, actor, now)


def _generate(label: str) -> KeyRef:
    return backend_for(environments.current()).generate_rsa(CA_KEY_BITS, label=label)


def _name(kind: str, now: datetime) -> x509.Name:
    """A name that differs by environment and generation, so that no verifier confuses two CAs."""
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
    serial, base_url = format_serial(certificate.serial_number), certificate_base_url(settings.BASE_URL)
    authority = CertificateAuthority.objects.create(
        role=role,
        parent=parent,
        common_name=str(certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value),
        serial_number=serial,
        key_uri=key.uri,
        certificate_der=certificate.public_bytes(Encoding.DER),
        certificate_url=f"{base_url}/v1/ca/{serial}",
        crl_url=f"{base_url}/v1/crl/{serial}",
        ocsp_url=f"{base_url}/v1/ocsp" if role == AuthorityRole.ISSUING else "",
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
    description = f"{authority.common_name} {verb}"
    metadata = {"role": authority.role, "serial_number": authority.serial_number}
    auditlog.record(
        of=authority, action=action, description=description, metadata=metadata, actor=actor, now=now
    )
