"""Messages signed in agents' names, and the check of what anyone shows as one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from certificates.issuing import wrapped_keys
from certificates.models import Certificate, CertificateStatus
from certificates.pki import jws as jose, signing
from certificates.public.verification import Verification, verify
from compliance.core import environments
from compliance.core.encodings import b64_decode, b64_encode
from compliance.core.errors import Invalid
from compliance.keys.base import KeyStorage
from compliance.keys.registry import backend_for

INVALID_SIGNATURE: Final = "invalid_signature"
INVALID_AUDIENCE: Final = "invalid_audience"
REASON_OF_STATUS: Final = {
    CertificateStatus.REVOKED: "certificate_revoked",
    CertificateStatus.EXPIRED: "certificate_expired",
}
REASONS: Final = [INVALID_SIGNATURE, *REASON_OF_STATUS.values(), INVALID_AUDIENCE]


@dataclass(frozen=True)
class MessageSignature:
    """A signature in base64 by an agent's key, and, where asked for, a detached JWS (RFC 7797)."""

    signature: str
    algorithm: str
    certificate_serial: str
    payload_hash: str
    jws: str | None = None


@dataclass(frozen=True)
class MessageVerification:
    """Whether a message is an agent's, valid now; `valid_when_signed`: None where no record tells when."""

    valid: bool
    reason: str | None
    certificate: Certificate
    status: CertificateStatus
    payload_hash: str
    algorithm: str = signing.ALGORITHM.value
    valid_when_signed: bool | None = None


def key_id(certificate: Certificate) -> str:
    """The DID URL of the key, as the agent's DID document names it."""
    return f"{certificate.claims['did']}#{certificate.serial_number}"


def sign_message(
    *, certificate: Certificate, payload: Any, as_jws: bool = False, audience: str | None = None
) -> MessageSignature:
    """Sign a JSON value, if asked also as a JWS, for an audience. Raises: Invalid, the HSM's 503 errors."""
    message, jws = signing.canonical(payload), None
    if as_jws:
        protected = _protected(certificate, audience)
        jws = jose.detached(protected, sign_octets(certificate, jose.message_input(protected, message)))
    return MessageSignature(
        signature=b64_encode(sign_octets(certificate, message)),
        algorithm=signing.ALGORITHM.value,
        certificate_serial=certificate.serial_number,
        payload_hash=signing.payload_hash(message),
        jws=jws,
    )


def sign_octets(certificate: Certificate, octets: bytes) -> bytes:
    """Sign octets that the service composed, never a caller's; raises the HSM's 503 errors."""
    if certificate.key_storage == KeyStorage.WRAPPED:
        return wrapped_keys.sign(certificate=certificate, octets=octets)
    return backend_for(environments.current()).sign(certificate.kms_key_arn, octets, signing.ALGORITHM)


def verify_message(
    *, serial: str, payload: Any, signature: str, audience: str | None = None, now: datetime
) -> MessageVerification:
    """Check a signed message; one whose certificate is revoked or expired now is invalid.

    The signature carries no time, so a message can't be shown to be older than the revocation; and no
    audience, so one that is asked for is never met.
    """
    message = signing.canonical(payload)
    found = verify(serial=serial, now=now)
    try:
        octets = b64_decode(signature)
    except ValueError:
        octets = b""
    is_authentic = signing.verifies(found.certificate.certificate_pem, message, octets)
    return _judged(found, message, is_authentic=is_authentic, is_meant=audience is None)


def verify_jws(*, jws: str, payload: Any, audience: str | None = None, now: datetime) -> MessageVerification:
    """Check a message with a detached JWS, as `verify_message` does.

    One with an audience is valid only for a verifier that states the same. The certificate is the one that
    `kid` names; raises `CertificateNotFound`, and `Invalid` for what is no detached JWS.
    """
    message = signing.canonical(payload)
    try:
        parsed = jose.parse_detached(jws)
    except ValueError as error:
        raise Invalid("jws: not a detached JWS with the kid of an agent's key") from error
    found = verify(serial=parsed.kid.rpartition("#")[2], now=now)
    # The service writes a header in one way only: every other is a forgery.
    is_ours = parsed.protected == _protected(found.certificate, parsed.audience)
    is_authentic = is_ours and signing.verifies(
        found.certificate.certificate_pem, jose.message_input(parsed.protected, message), parsed.signature
    )
    return _judged(found, message, is_authentic=is_authentic, is_meant=parsed.audience == audience)


def _judged(
    found: Verification, message: bytes, *, is_authentic: bool, is_meant: bool
) -> MessageVerification:
    reason = REASON_OF_STATUS.get(found.status) if is_authentic else INVALID_SIGNATURE
    if reason is None and not is_meant:
        reason = INVALID_AUDIENCE
    return MessageVerification(
        reason is None, reason, found.certificate, found.status, signing.payload_hash(message)
    )


def _protected(certificate: Certificate, audience: str | None) -> str:
    leaf = x509.load_pem_x509_certificate(certificate.certificate_pem.encode("ascii"))
    fingerprint = leaf.fingerprint(hashes.SHA256())
    return jose.message_header(key_id(certificate), certificate_sha256=fingerprint, audience=audience)
