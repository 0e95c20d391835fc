"""Messages that agents sign: RSA with SHA-256 over the payload's canonical JSON (RFC 8785)."""

import json
import math
import re
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from agentid.errors import NotValid, Reason
from agentid.jose import b64_decode, b64url_decode, b64url_encode, read_object
from agentid.verify.x509.certificates import VerifiedCertificate

MESSAGE_TYPE: Final = "agent-message+jws"
MAX_JWS: Final = 4_096
LARGEST_INTEGER: Final = 2**53 - 1
DIGITS: Final = re.compile(r"(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?")


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
        return _text(value).encode("utf-8")
    except (UnicodeEncodeError, RecursionError, OverflowError):
        raise NotValid(Reason.MALFORMED, "not representable as canonical JSON") from None


def _text(value: Any) -> str:
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise NotValid(Reason.MALFORMED, "a name that is no text")
        # §3.2.3: names are sorted by their UTF-16 code units.
        pairs = sorted(value.items(), key=lambda pair: pair[0].encode("utf-16-be"))
        return "{" + ",".join(f"{_text(name)}:{_text(each)}" for name, each in pairs) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int):
        if abs(value) <= LARGEST_INTEGER:
            return str(int(value))
        # A larger one is the double that holds it, or that ECMAScript writes so.
        text = _number(float(value))
        if int(float(value)) == value or text == str(value):
            return text
    raise NotValid(Reason.MALFORMED, f"{type(value).__name__} is not representable as canonical JSON")


def _number(value: float) -> str:
    """A double as ECMAScript writes it (§3.2.2.3): Python's shortest digits, laid out anew."""
    if not math.isfinite(value):
        raise NotValid(Reason.MALFORMED, "not a finite number")
    found = DIGITS.fullmatch(repr(value))
    assert found is not None  # noqa: S101  (Python's own notation)
    sign, whole, fraction, power = found[1], found[2], found[3] or "", int(found[4] or 0)
    point = len((whole + fraction).lstrip("0")) - len(fraction) + power
    digits = (whole + fraction).strip("0")
    if not digits:
        return "0"
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"
