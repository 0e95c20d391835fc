"""The CAs of an environment: creation and rotation."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.errors import AuthorityNotFound
from certificates.issuing import key_pool, wrapped_keys
from certificates.lists import publication
from certificates.models import AuthorityRole, CertificateAuthority, WrappingKey
from certificates.ocsp import responders
from certificates.pki import MAX_LIFETIME
from certificates.pki.names import authority_name, certificate_base_url
from certificates.pki.serials import format_serial, new_serial
from certificates.pki.x509 import Validity, authority_builder, sign
from compliance.core import environments
from compliance.core.errors import Conflict
from compliance.keys.base import KeyStorage
from compliance.keys.registry import backend_for, rsa_private_key
from compliance.stores import sql

ROOT_LIFETIME: Final = timedelta(days=20 * 365)
ISSUING_LIFETIME: Final = timedelta(days=10 * 365)
CA_KEY_BITS: Final = 3072
BOOTSTRAP_LOCK: Final = 0x43415F494E4954  # "CA_INIT"
ROTATION_REST: Final = timedelta(days=1)
"""A second rotation within this time is taken for a command run twice."""
ACTOR: Final = Actor.system("ca_init")


def bootstrap(*, now: datetime) -> CertificateAuthority:
    """Make what is missing: CAs, first lists, the wrapping key; return the issuing CA. Safe in parallel."""
    is_wrapped = key_pool.storage() is KeyStorage.WRAPPED
    if is_wrapped and not WrappingKey.objects.filter(retired_at=None).exists():
        wrapped_keys.rotate(actor=ACTOR, now=now)
    with environments.atomic():
        sql.query("SELECT pg_advisory_xact_lock(%s)", [BOOTSTRAP_LOCK])
        in_service = {ca.role: ca for ca in CertificateAuthority.objects.in_service()}
        issuing = in_service.get(AuthorityRole.ISSUING)
        if issuing is None:
            root = in_service.get(AuthorityRole.ROOT) or _make(None, ACTOR, now)
            issuing = _make(root, ACTOR, now)
    _put_to_work(ACTOR, now)
    return issuing


@dataclass(frozen=True)
class Rotation:
    successor: CertificateAuthority
    predecessor: CertificateAuthority


def rotate(*, actor: Actor, now: datetime, force: bool = False, with_root: bool = False) -> Rotation:
    """Replace the issuing CA by a new one under the root, or under a new root `with_root`; publish its lists.

    A crash leaves the old CA in service, and at worst an unused key in the HSM. Raises `AuthorityNotFound`
    before `ca_init`, `Conflict` within a day unless `force`, and if the root ends too soon.
    """
    with environments.atomic():
        sql.query("SELECT pg_advisory_xact_lock(%s)", [BOOTSTRAP_LOCK])
        in_service = {ca.role: ca for ca in CertificateAuthority.objects.in_service().locked()}
        if AuthorityRole.ISSUING not in in_service:
            raise AuthorityNotFound("There is no issuing CA to rotate; run ca_init")
        old, root = in_service[AuthorityRole.ISSUING], in_service[AuthorityRole.ROOT]
        if not force and now < old.created_at + ROTATION_REST:
            raise Conflict("The issuing CA was made less than a day ago")
        if with_root:
            _retire(root, actor, now)
            root = _make(None, actor, now)
        elif root.not_after < now + MAX_LIFETIME:
            raise Conflict("The root CA ends before an issuing CA would be of use")
        _retire(old, actor, now)
        rotation = Rotation(successor=_make(root, actor, now), predecessor=old)
    _put_to_work(actor, now)
    return rotation


def _put_to_work(actor: Actor, now: datetime) -> None:
    publication.publish_due(actor=actor, now=now)
    responders.maintain(actor=actor, now=now)


def _retire(authority: CertificateAuthority, actor: Actor, now: datetime) -> None:
    authority.retired_at = now
    authority.save(update_fields=["retired_at"])
    _audit(authority, AuditAction.CA_ROTATED, "rotated out of service", actor, now)


def _make(parent: CertificateAuthority | None, actor: Actor, now: datetime) -> CertificateAuthority:
    """Make the issuing CA, or without a parent a root, under a name that no other CA has."""
    role, lifetime = AuthorityRole.ROOT, ROOT_LIFETIME
    if parent is not None:
        role, lifetime = AuthorityRole.ISSUING, ISSUING_LIFETIME
    environment, issuer = environments.current(), parent.as_issuer if parent else None
    key = backend_for(environment).generate_rsa(CA_KEY_BITS, label=f"ca-{role}")
    common_name = f"{environment.value.title()} {role.label} CA {now:%Y%m%d%H%M%S}"
    within = Validity.of(issuer.certificate) if issuer else None
    builder = authority_builder(
        name=authority_name(organization=settings.SERVICE_TITLE, common_name=common_name),
        public_key=key.public_key,
        serial=new_serial(environment),
        validity=Validity.lasting(lifetime, now=now, within=within),
        issuer=issuer,
    )
    certificate = sign(builder, rsa_private_key(parent.key_uri if parent else key.uri))
    if issuer is not None:
        certificate.verify_directly_issued_by(issuer.certificate)
    serial, base_url = format_serial(certificate.serial_number), certificate_base_url(settings.BASE_URL)
    authority = CertificateAuthority.objects.create(
        role=role,
        parent=parent,
        common_name=common_name,
        serial_number=serial,
        key_uri=key.uri,
        certificate_der=certificate.public_bytes(Encoding.DER),
        certificate_url=f"{base_url}/v1/ca/{serial}",
        crl_url=f"{base_url}/v1/crl/{serial}",
        ocsp_url=f"{base_url}/v1/ocsp" if parent else "",
        crl_shards=settings.CRL_SHARDS if parent else 0,
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
