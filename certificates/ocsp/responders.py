"""Answer OCSP requests (RFC 6960, RFC 9654) for one certificate by delegated responders, renewed here."""

import hashlib
import logging
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Final
from uuid import UUID

from asn1crypto import ocsp as asn1
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp
from django.db import InterfaceError, OperationalError

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from certificates.models import (
    AuthorityRole,
    AuthorityState,
    Certificate,
    CertificateAuthority,
    OcspResponder,
)
from certificates.pki.lint import SERIAL_BITS, responder_findings, sign_linted
from certificates.pki.names import authority_name
from certificates.pki.serials import environment_of, format_serial, new_serial
from certificates.pki.x509 import Validity, responder_builder
from compliance.core import environments
from compliance.core.encodings import b64_decode
from compliance.core.environments import Environment
from compliance.core.errors import Unavailable
from compliance.keys.registry import backend_for, destroy_if_present, private_key, rsa_private_key
from compliance.stores import sql
from compliance.stores.sweeps import each

log = logging.getLogger(__name__)

LIFETIME: Final = timedelta(days=7)
"""Short, since no client checks a responder's revocation (ocsp-nocheck)."""
RENEW_AT: Final = 0.5
ANSWER_LIFETIME: Final = timedelta(minutes=10)
PUBLISHING: Final = (AuthorityState.ACTIVE, AuthorityState.RETIRING)

MAX_REQUEST: Final = 8 * 1024
MAX_NONCE: Final = 128
HASHES: Final[dict[str, hashes.HashAlgorithm]] = {
    algorithm.name: algorithm
    for algorithm in (hashes.SHA1(), hashes.SHA256(), hashes.SHA384(), hashes.SHA512())  # noqa: S303
}
"""Hashes by which a request may name its issuer. Most clients use SHA-1, where a collision gains nothing."""

_ISSUING: Final = "WHERE role = %s ORDER BY created_at DESC, id DESC"
_VALID: Final = "WHERE not_before <= %s AND not_after > %s ORDER BY created_at DESC, id DESC"
_ASKED_ABOUT: Final = "WHERE serial_number = %s"


OcspAnswer = tuple[bytes, bool]
"""A response in DER, and whether caches may keep it for the same request."""


class MalformedRequest(Exception):
    """Not an OCSP request about one certificate, or one beyond the limits."""


def answer(*, request: bytes | str, now: datetime) -> OcspAnswer:
    """Answer a request in DER, or in base64 as a GET carries it; errors become OCSP error responses."""
    try:
        return _answer(*_read(request), now)
    except MalformedRequest:
        return _refusal(ocsp.OCSPResponseStatus.MALFORMED_REQUEST)
    except (Unavailable, OperationalError, InterfaceError) as error:
        log.warning("an OCSP request was answered with tryLater: %s", type(error).__name__)
        return _refusal(ocsp.OCSPResponseStatus.TRY_LATER)


def _refusal(status: ocsp.OCSPResponseStatus) -> OcspAnswer:
    """A response without a certificate's status, which is not signed (RFC 6960 §4.2.1)."""
    response = ocsp.OCSPResponseBuilder.build_unsuccessful(status)
    return response.public_bytes(Encoding.DER), False


def _read(sent: bytes | str) -> tuple[ocsp.OCSPRequest, bytes | None]:
    """Read a request, in DER or a GET's base64 (RFC 6960 appendix A.1), and its nonce (RFC 9654 §2.1)."""
    nonce: bytes | None = None
    try:
        der = sent if isinstance(sent, bytes) else b64_decode(sent[: MAX_REQUEST * 2])
        request = ocsp.load_der_ocsp_request(der[: MAX_REQUEST + 1])
        for extension in request.extensions:
            if isinstance(extension.value, x509.OCSPNonce):
                nonce = extension.value.nonce
            elif extension.critical:
                raise MalformedRequest("critical extension")
        (about,) = asn1.OCSPRequest.load(der)["tbs_request"]["request_list"]
        if any(extension["critical"].native for extension in about["single_request_extensions"] or ()):
            raise MalformedRequest("critical extension")
        is_readable = request.hash_algorithm.name in HASHES and request.serial_number > 0
    except (
        ValueError,
        TypeError,
        NotImplementedError,
        UnsupportedAlgorithm,
        x509.DuplicateExtension,
    ) as error:
        raise MalformedRequest("not a request about one certificate") from error
    if not is_readable or len(der) > MAX_REQUEST or (nonce is not None and not 1 <= len(nonce) <= MAX_NONCE):
        raise MalformedRequest("unknown hash, or too long")
    return request, nonce


def _answer(request: ocsp.OCSPRequest, nonce: bytes | None, now: datetime) -> OcspAnswer:
    serial = request.serial_number
    likely = environment_of(serial) if serial < 1 << SERIAL_BITS else Environment.LIVE
    for environment in (likely, *(other for other in Environment if other is not likely)):
        with environments.use(environment):
            authorities, valid, certificates = sql.read_together(
                (CertificateAuthority, _ISSUING, [AuthorityRole.ISSUING]),
                (OcspResponder, _VALID, [now, now]),
                (Certificate, _ASKED_ABOUT, [format_serial(serial)]),
            )
            for authority in authorities:
                named = (request.issuer_name_hash, request.issuer_key_hash)
                is_issuer = named == _hashes(bytes(authority.certificate_der), request.hash_algorithm.name)
                if is_issuer and authority.state_at(now) in PUBLISHING:
                    responder = next((row for row in valid if row.authority_id == authority.id), None)
                    if responder is None:
                        return _refusal(ocsp.OCSPResponseStatus.TRY_LATER)
                    own = next((row for row in certificates if row.authority_id == authority.id), None)
                    return _signed(responder, request, own, nonce, now)
    return _refusal(ocsp.OCSPResponseStatus.UNAUTHORIZED)


@lru_cache(maxsize=200)
def _hashes(certificate_der: bytes, hash_name: str) -> tuple[bytes, bytes]:
    """The hashes of a CA's name and key by which a request names it (RFC 6960 §4.1.1)."""
    issuer = x509.load_der_x509_certificate(certificate_der)
    about_itself = ocsp.OCSPRequestBuilder().add_certificate(issuer, issuer, HASHES[hash_name]).build()
    return hashlib.new(hash_name, issuer.subject.public_bytes()).digest(), about_itself.issuer_key_hash


def _signed(
    responder: OcspResponder,
    request: ocsp.OCSPRequest,
    found: Certificate | None,
    nonce: bytes | None,
    now: datetime,
) -> OcspAnswer:
    """Tell how the certificate stands, unknown if the CA has not issued it; signed by the CA's responder."""
    status, reason = ocsp.OCSPCertStatus.UNKNOWN, None
    revoked_at = found.revoked_at if found else None
    if found is not None:
        status = ocsp.OCSPCertStatus.REVOKED if revoked_at else ocsp.OCSPCertStatus.GOOD
        code = found.revocation_code or "unspecified"
        reason = x509.ReasonFlags(code) if revoked_at and code != "unspecified" else None
    this_update = now.replace(microsecond=0)
    certificate = x509.load_der_x509_certificate(bytes(responder.certificate_der))
    builder = (
        ocsp.OCSPResponseBuilder()
        .add_response_by_hash(
            request.issuer_name_hash,
            request.issuer_key_hash,
            request.serial_number,
            request.hash_algorithm,
            status,
            this_update,
            min(this_update + ANSWER_LIFETIME, responder.not_after),
            revoked_at,
            reason,
        )
        .responder_id(ocsp.OCSPResponderEncoding.HASH, certificate)
        .certificates([certificate])
    )
    if nonce is not None:
        builder = builder.add_extension(x509.OCSPNonce(nonce), critical=False)
    response = builder.sign(private_key(environments.current(), responder.key_uri), hashes.SHA256())
    return response.public_bytes(Encoding.DER), nonce is None


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
    environment, issuer = environments.current(), authority.as_issuer
    key = backend_for(environment).generate_ec(label="ocsp-responder")
    serial = new_serial(environment)
    name = authority_name(organization="", common_name=f"OCSP Responder {format_serial(serial)[:16]}")
    validity = Validity.lasting(LIFETIME, now=now, within=Validity.of(issuer.certificate))
    builder = responder_builder(
        name=name, public_key=key.public_key, serial=serial, validity=validity, issuer=issuer
    )
    judge = partial(responder_findings, issuer=issuer, serial=serial)
    certificate = sign_linted(builder, rsa_private_key(authority.key_uri), issuer, judge)
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
        of=made,
        action=AuditAction.OCSP_RESPONDER_CREATED,
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
