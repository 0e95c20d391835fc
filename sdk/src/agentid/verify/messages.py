"""Messages that agents sign: RSA with SHA-256 over the payload's canonical JSON (RFC 8785)."""

from typing import Any, Final

import rfc8785
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from agentid.errors import NotValid, Reason
from agentid.jose import b64_decode, b64url_decode, b64url_encode, read_object
from agentid.verify.x509.certificates import VerifiedCertificate

MESSAGE_TYPE: Final = "agent-message+jws"
MAX_JWS: Final = 4_096
LARGEST_INTEGER: Final = 2**53 - 1


def verify_message(payload: Any, signature: str, *, signer: VerifiedCertificate) -> None:
    """Check that the signer's key signed this payload; `signature` is base64, as it came.

    Raises: NotValid (malformed, unsupported_algorithm, invalid_signature).
    """
    check_rsa(signer, b64_decode(signature), canonical(payload))


def verify_message_jws(
    payload: Any, jws: str, *, signer: VerifiedCertificate, audience: str | None = None
) -> None:
    """Check a detached JWS (RFC 7797) over the payload's canonical JSON, meant for `audience`.

    Its header must be the very one that the service writes for this certificate; so a JWS for somebody else
    is refused, and one for nobody if an `audience` is given.
    Raises: NotValid (malformed, unsupported_algorithm, wrong_key, wrong_audience, invalid_signature).
    """
    segments = jws.split(".")
    if len(jws) > MAX_JWS or len(segments) != 3 or segments[1] or not jws.isascii():
        raise NotValid(Reason.MALFORMED, "not a detached JWS")
    header = read_object(b64url_decode(segments[0]))
    if header.get("alg") != "RS256":
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, "only RS256 is accepted")
    expected = _message_header(signer)
    if any(header.get(name) != expected[name] for name in ("kid", "x5t#S256")):
        raise NotValid(Reason.WRONG_KEY, "signed by another certificate")
    rest = {name: value for name, value in header.items() if name != "aud"}
    if rest != expected or header["b64"] is not False:
        raise NotValid(Reason.MALFORMED, "the header is not that of a message")
    check_rsa(signer, b64url_decode(segments[2]), f"{segments[0]}.".encode() + canonical(payload))
    if ("aud" in header) != (audience is not None) or header.get("aud") != audience:
        raise NotValid(Reason.WRONG_AUDIENCE)


def _message_header(signer: VerifiedCertificate) -> dict[str, Any]:
    return {
        "alg": "RS256",
        "b64": False,
        "crit": ["b64"],
        "kid": f"{signer.identity.did}#{signer.serial_number}",
        "typ": MESSAGE_TYPE,
        "x5t#S256": b64url_encode(signer.certificate.fingerprint(hashes.SHA256())),
    }


def check_rsa(signer: VerifiedCertificate, signature: bytes, signed: bytes) -> None:
    """Raise NotValid (unsupported_algorithm, invalid_signature) unless the signer's key made it."""
    key = signer.certificate.public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, "the certificate's key is not RSA")
    try:
        key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        raise NotValid(Reason.INVALID_SIGNATURE) from None


def canonical(value: Any) -> bytes:
    """The RFC 8785 form of a JSON value. Raises: NotValid (malformed) for what has none."""
    try:
        return rfc8785.dumps(_with_doubles(value))
    except (rfc8785.CanonicalizationError, UnicodeError, RecursionError, OverflowError):
        raise NotValid(Reason.MALFORMED, "not representable as canonical JSON") from None


def _with_doubles(value: Any) -> Any:
    """The value with large integers as the double that holds each, or that ECMAScript writes so."""
    if isinstance(value, dict):
        return {name: _with_doubles(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_doubles(each) for each in value]
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        double = float(value)
        return double if int(double) == value or rfc8785.dumps(double) == b"%d" % value else value
    return value
