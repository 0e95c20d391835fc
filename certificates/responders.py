"""Answering OCSP: delegated responders with keys in the HSM, renewed by themselves, and their answers."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.db import InterfaceError, OperationalError

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from certificates import ocsp
from certificates.authorities import issuer_info, signing_key
from certificates.lint import sign_responder
from certificates.models import (
    AuthorityRole,
    AuthorityState,
    Certificate,
    CertificateAuthority,
    OcspResponder,
)
from certificates.names import authority_name
from certificates.ocsp import CertificateId, IssuerHashes, MalformedRequest, Question, Responder, Status
from certificates.serials import environment_of, format_serial, new_serial
from certificates.x509 import Validity, responder_builder
from compliance import environments, sql
from compliance.environments import Environment
from compliance.errors import Unavailable
from compliance.keys import KeyNotFound, backend_for, private_key

log = logging.getLogger(__name__)

LIFETIME: Final = timedelta(days=7)
"""Short, since nobody checks whether a responder was revoked (ocsp-nocheck)."""
RENEW_AT: Final = 0.5
ANSWER_LIFETIME: Final = timedelta(minutes=10)
KEY_LABEL: Final = "ocsp-responder"
SERIAL_BITS: Final = 159
PUBLISHING: Final = (AuthorityState.ACTIVE, AuthorityState.RETIRING)


@dataclass(frozen=True)
class OcspAnswer:
    """A response in DER; `is_shared` when it may be kept for others who ask the same."""

    der: bytes
    is_shared: bool = False


def maintain(*, actor: Actor, now: datetime) -> int:
    """Give each CA a responder that lasts, remove the expired with their keys; how many were made.

    503 errors of the HSM.
    """
    authorities = CertificateAuthority.objects.publishing(now).filter(role=AuthorityRole.ISSUING)
    made = sum(_renew(authority, actor, now) for authority in authorities.order_by("created_at", "id"))
    for expired in OcspResponder.objects.filter(not_after__lt=now - ANSWER_LIFETIME):
        _remove(expired)
    return made


def answer(*, request: bytes | str, now: datetime) -> OcspAnswer:
    """The response to a request in DER, or in base64 as a GET carries it; never raises for what was sent."""
    try:
        question = (
            ocsp.read_request(request) if isinstance(request, bytes) else ocsp.read_encoded_request(request)
        )
    except MalformedRequest:
        return OcspAnswer(ocsp.error_response(ocsp.MALFORMED))
    try:
        return _answer(question, now)
    except (Unavailable, OperationalError, InterfaceError) as error:
        log.warning("an OCSP request was put off: %s", type(error).__name__)
        return OcspAnswer(ocsp.error_response(ocsp.TRY_LATER))


def _answer(question: Question, now: datetime) -> OcspAnswer:
    first = question.certificates[0]
    serials = [format_serial(item.serial) for item in question.certificates if item.serial > 0]
    for environment in _environments(first.serial):
        with environments.use(environment):
            authorities, current, certificates = sql.read_together(
                (CertificateAuthority, _ISSUING, [AuthorityRole.ISSUING]),
                (OcspResponder, _LASTING, [now, now]),
                (Certificate, _ASKED_ABOUT, [serials]),
            )
            authority = _named(authorities, first, now)
            if authority is not None:
                return _answer_for(authority, current, certificates, question, now)
    return OcspAnswer(ocsp.error_response(ocsp.UNAUTHORIZED))


_ISSUING: Final = "WHERE role = %s ORDER BY created_at DESC, id DESC"
_LASTING: Final = "WHERE not_before <= %s AND not_after > %s ORDER BY created_at DESC, id DESC"
_ASKED_ABOUT: Final = "WHERE serial_number = ANY(%s)"


def _environments(serial: int) -> tuple[Environment, ...]:
    """All, the one that the serial tells first."""
    likely = environment_of(serial) if 0 < serial < 1 << SERIAL_BITS else Environment.LIVE
    return (likely, *(other for other in Environment if other is not likely))


def _named(
    authorities: Sequence[CertificateAuthority], certificate: CertificateId, now: datetime
) -> CertificateAuthority | None:
    for authority in authorities:
        if authority.state_at(now) in PUBLISHING and _names(authority, certificate):
            return authority
    return None


def _names(authority: CertificateAuthority, certificate: CertificateId) -> bool:
    return _hashes(bytes(authority.certificate_der), certificate.hash_name).names(certificate)


@lru_cache(maxsize=200)
def _hashes(certificate_der: bytes, hash_name: str) -> IssuerHashes:
    return IssuerHashes.of(x509.load_der_x509_certificate(certificate_der), hash_name)


_signer = lru_cache(maxsize=20)(Responder.of)


def _answer_for(
    authority: CertificateAuthority,
    responders: Sequence[OcspResponder],
    certificates: Sequence[Certificate],
    question: Question,
    now: datetime,
) -> OcspAnswer:
    """By the latest responder of the CA of the first certificate; another CA's are unknown to it."""
    current = next((one for one in responders if one.authority_id == authority.id), None)
    if current is None:
        return OcspAnswer(ocsp.error_response(ocsp.TRY_LATER))
    moment = now.replace(microsecond=0)
    own = {row.serial_number: row for row in certificates if row.authority_id == authority.id}
    der = ocsp.signed_response(
        [_status(authority, item, own) for item in question.certificates],
        nonce=question.nonce,
        this_update=moment,
        next_update=min(moment + ANSWER_LIFETIME, current.not_after),
        responder=_signer(bytes(current.certificate_der)),
        key=private_key(environments.current(), current.key_uri),
    )
    return OcspAnswer(der, is_shared=question.nonce is None)


def _status(authority: CertificateAuthority, item: CertificateId, own: Mapping[str, Certificate]) -> Status:
    found = own.get(format_serial(item.serial)) if item.serial > 0 else None
    if found is None or not _names(authority, item):
        return Status(item, known=False)
    reason = x509.ReasonFlags(found.revocation_code or "unspecified")
    return Status(item, known=True, revoked_at=found.revoked_at, reason=reason)


def _renew(authority: CertificateAuthority, actor: Actor, now: datetime) -> bool:
    """Makers of one CA's responder take turns under its row lock, and the second finds it made."""
    if _lasts(authority, now):
        return False
    with environments.atomic():
        authority = CertificateAuthority.objects.locked().get(id=authority.id)
        if _lasts(authority, now):
            return False
        _make(authority, actor, now)
    return True


def _lasts(authority: CertificateAuthority, now: datetime) -> bool:
    return OcspResponder.objects.filter(
        authority=authority, not_before__lte=now, not_after__gt=now + LIFETIME * RENEW_AT
    ).exists()


def _make(authority: CertificateAuthority, actor: Actor, now: datetime) -> None:
    environment, issuer = environments.current(), issuer_info(authority)
    key = backend_for(environment).generate_ec(label=KEY_LABEL)
    serial = new_serial(environment)
    builder = responder_builder(
        name=authority_name(organization="", common_name=f"OCSP Responder {format_serial(serial)[:16]}"),
        public_key=key.public_key,
        serial=serial,
        validity=Validity.lasting(LIFETIME, now=now, within=Validity.of(issuer.certificate)),
        issuer=issuer,
    )
    certificate = sign_responder(builder, key=signing_key(authority), issuer=issuer, serial=serial)
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


def _remove(expired: OcspResponder) -> None:
    """The key first: a crash between leaves a row to try again by."""
    try:
        backend_for(environments.current()).destroy(expired.key_uri)
    except KeyNotFound:
        log.info("the key of an expired OCSP responder was gone already")
    expired.delete()
