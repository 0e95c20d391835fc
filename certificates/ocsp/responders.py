"""Answer OCSP requests by delegated responders, whose keys and certificates in the HSM are renewed here."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, Final
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings
from django.db import InterfaceError, OperationalError

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from certificates.authorities import issuer_info, signing_key
from certificates.models import (
    AuthorityRole,
    AuthorityState,
    Certificate,
    CertificateAuthority,
    OcspResponder,
)
from certificates.ocsp import responses as ocsp
from certificates.pki.lint import SERIAL_BITS, responder_findings, sign_linted
from certificates.pki.names import authority_name
from certificates.pki.serials import environment_of, format_serial, new_serial
from certificates.pki.x509 import Validity, responder_builder
from certificates.public import known_tenants
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import Unavailable
from compliance.keys import backend_for, destroy_if_present, private_key
from compliance.stores import sql
from compliance.stores.sweeps import each

log = logging.getLogger(__name__)

LIFETIME: Final = timedelta(days=7)
"""Short, since no client checks a responder's revocation (ocsp-nocheck)."""
RENEW_AT: Final = 0.5
ANSWER_LIFETIME: Final = timedelta(minutes=10)
PUBLISHING: Final = (AuthorityState.ACTIVE, AuthorityState.RETIRING)

_ISSUING: Final = "WHERE role = %s ORDER BY created_at DESC, id DESC"
_VALID: Final = "WHERE not_before <= %s AND not_after > %s ORDER BY created_at DESC, id DESC"
_ASKED_ABOUT: Final = "WHERE serial_number = ANY(%s)"
_OF_TENANTS: Final = f"{_ASKED_ABOUT} AND tenant_id = ANY(%s)"


@dataclass(frozen=True)
class OcspAnswer:
    """A response in DER; `is_shared` if caches may keep it for the same request."""

    der: bytes
    is_shared: bool = False


def answer(*, request: bytes | str, now: datetime) -> OcspAnswer:
    """Answer a request in DER, or in base64 as a GET carries it; errors become OCSP error responses."""
    try:
        return _answer(ocsp.read_request(request), now)
    except ocsp.MalformedRequest:
        return OcspAnswer(ocsp.error_response(ocsp.MALFORMED))
    except (Unavailable, OperationalError, InterfaceError) as error:
        log.warning("an OCSP request was answered with tryLater: %s", type(error).__name__)
        return OcspAnswer(ocsp.error_response(ocsp.TRY_LATER))


def _answer(request: ocsp.OcspRequest, now: datetime) -> OcspAnswer:
    first = request.certificates[0]
    serials = [item.serial for item in request.certificates if item.serial > 0]
    for environment in _environments(first.serial):
        with environments.use(environment):
            authorities, valid, certificates = sql.read_together(
                (CertificateAuthority, _ISSUING, [AuthorityRole.ISSUING]),
                (OcspResponder, _VALID, [now, now]),
                (Certificate, *_asked_about(serials, environment)),
            )
            for authority in authorities:
                if authority.state_at(now) in PUBLISHING and _is_issuer(authority, first):
                    certificates += _not_found_yet(serials, certificates, environment)
                    return _answer_for(authority, valid, certificates, request, now)
    return OcspAnswer(ocsp.error_response(ocsp.UNAUTHORIZED))


def _asked_about(serials: Sequence[int], environment: Environment) -> tuple[str, list[Any]]:
    """What finds the certificates; on Citus those of the known tenants that the serials name."""
    texts = [*map(format_serial, serials)]
    if not settings.DATABASE_CITUS:
        return _ASKED_ABOUT, [texts]
    return _OF_TENANTS, [texts, [*known_tenants.named_by(serials, environment)]]


def _not_found_yet(
    serials: Sequence[int], found: Sequence[Certificate], environment: Environment
) -> list[Certificate]:
    """On Citus, the certificates that no shard named by their serial numbers gave."""
    left = {*map(format_serial, serials)} - {row.serial_number for row in found}
    if not (settings.DATABASE_CITUS and left):
        return []
    (rows,) = sql.read_together((Certificate, _ASKED_ABOUT, [[*left]]))
    known_tenants.learn(((int(row.serial_number, 16), row.tenant_id) for row in rows), environment)
    return rows


def _environments(serial: int) -> tuple[Environment, ...]:
    likely = environment_of(serial) if 0 < serial < 1 << SERIAL_BITS else Environment.LIVE
    return (likely, *(other for other in Environment if other is not likely))


def _is_issuer(authority: CertificateAuthority, item: ocsp.CertId) -> bool:
    return _hashes(bytes(authority.certificate_der), item.hash_name) == item.issuer


@lru_cache(maxsize=200)
def _hashes(certificate_der: bytes, hash_name: str) -> ocsp.IssuerHashes:
    return ocsp.IssuerHashes.of(x509.load_der_x509_certificate(certificate_der), hash_name)


_responder_of = lru_cache(maxsize=20)(ocsp.Responder.of)


def _answer_for(
    authority: CertificateAuthority,
    valid: Sequence[OcspResponder],
    certificates: Sequence[Certificate],
    request: ocsp.OcspRequest,
    now: datetime,
) -> OcspAnswer:
    """Answer by the CA's newest responder; certificates of other CAs are unknown to it."""
    responder = next((row for row in valid if row.authority_id == authority.id), None)
    if responder is None:
        return OcspAnswer(ocsp.error_response(ocsp.TRY_LATER))
    this_update = now.replace(microsecond=0)
    own = {row.serial_number: row for row in certificates if row.authority_id == authority.id}
    der = ocsp.signed_response(
        [_status(authority, item, own) for item in request.certificates],
        nonce=request.nonce,
        this_update=this_update,
        next_update=min(this_update + ANSWER_LIFETIME, responder.not_after),
        responder=_responder_of(bytes(responder.certificate_der)),
        key=private_key(environments.current(), responder.key_uri),
    )
    return OcspAnswer(der, is_shared=request.nonce is None)


def _status(
    authority: CertificateAuthority, item: ocsp.CertId, own: Mapping[str, Certificate]
) -> ocsp.SingleResponse:
    found = own.get(format_serial(item.serial)) if item.serial > 0 else None
    if found is None or not _is_issuer(authority, item):
        return ocsp.SingleResponse(item, known=False)
    reason = x509.ReasonFlags(found.revocation_code or "unspecified")
    return ocsp.SingleResponse(item, known=True, revoked_at=found.revoked_at, reason=reason)


def maintain(*, actor: Actor, now: datetime) -> int:
    """Renew each CA's responder at half its life and remove expired ones; return how many were made."""
    authorities = CertificateAuthority.objects.publishing(now).filter(role=AuthorityRole.ISSUING)
    ordered = authorities.order_by("created_at", "id").values_list("id", flat=True)
    made = each(ordered, lambda authority_id: _renew(authority_id, actor, now))
    expired = OcspResponder.objects.filter(not_after__lt=now - ANSWER_LIFETIME).order_by("not_after", "id")
    each(expired.values_list("id", flat=True), _remove)
    return made


def _renew(authority_id: UUID, actor: Actor, now: datetime) -> bool:
    """Make a responder unless there is one; checked again under the CA's lock."""
    lasting = OcspResponder.objects.filter(
        authority_id=authority_id, not_before__lte=now, not_after__gt=now + LIFETIME * RENEW_AT
    )
    if lasting.exists():
        return False
    with environments.atomic():
        authority = CertificateAuthority.objects.locked().get(id=authority_id)
        if lasting.exists():
            return False
        _make(authority, actor, now)
    return True


def _make(authority: CertificateAuthority, actor: Actor, now: datetime) -> None:
    environment, issuer = environments.current(), issuer_info(authority)
    key = backend_for(environment).generate_ec(label="ocsp-responder")
    serial = new_serial(environment)
    name = authority_name(organization="", common_name=f"OCSP Responder {format_serial(serial)[:16]}")
    validity = Validity.lasting(LIFETIME, now=now, within=Validity.of(issuer.certificate))
    builder = responder_builder(
        name=name, public_key=key.public_key, serial=serial, validity=validity, issuer=issuer
    )
    judge = partial(responder_findings, issuer=issuer, serial=serial)
    certificate = sign_linted(builder, signing_key(authority), issuer, judge)
    made = OcspResponder.objects.create(
        authority=authority,
        serial_number=format_serial(serial),
        key_uri=key.uri,
        certificate_der=certificate.public_bytes(Encoding.DER),
        not_before=certificate.not_valid_before_utc,
        not_after=certificate.not_valid_after_utc,
        created_at=now,
    )
    auditlog.record(
        tenant_id=SERVICE_TENANT_ID,
        action=AuditAction.OCSP_RESPONDER_CREATED,
        affected_id=made.id,
        description=f"OCSP responder of {authority.common_name} created",
        metadata={"authority_id": str(authority.id), "serial_number": made.serial_number},
        actor=actor,
        now=now,
    )


def _remove(responder_id: UUID) -> bool:
    """Destroy the key first: after a crash in between, the row leads to it again."""
    expired = OcspResponder.objects.filter(id=responder_id).first()
    if expired is None:
        return False
    destroy_if_present(expired.key_uri)
    expired.delete()
    return True
