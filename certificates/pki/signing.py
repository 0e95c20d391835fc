"""Message signatures over canonical JSON (RFC 8785), never over a caller's raw string.

An endpoint that signed raw strings would sign the input of a JWT, and so issue tokens under the agent's key.
Canonical JSON never starts as such an input does.
"""

import hashlib
from typing import Any, Final

import rfc8785
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from compliance.core.errors import Invalid
from compliance.keys.base import SignatureAlgorithm

ALGORITHM: Final = SignatureAlgorithm.RSA_SHA256


def canonical(payload: Any) -> bytes:
    """The RFC 8785 form of a JSON value; `Invalid` for integers that no double holds, NaN and infinities."""
    try:
        try:
            return rfc8785.dumps(payload)
        except rfc8785.IntegerDomainError:
            return rfc8785.dumps(_with_doubles(payload))
    except (rfc8785.IntegerDomainError, OverflowError) as error:
        raise Invalid(
            "payload: integers beyond 2^53 - 1 that no double holds can't be signed; send them as strings"
        ) from error
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise Invalid("payload: not representable as canonical JSON (RFC 8785)") from error


def _with_doubles(value: Any) -> Any:
    """The value with the double of each large integer in its place: to RFC 8785 they are one number.

    That is one which a double holds, or which ECMAScript writes for a double (2^60 as 1152921504606847000).
    """
    if isinstance(value, dict):
        return {name: _with_doubles(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_doubles(item) for item in value]
    if isinstance(value, int) and abs(value) >= 2**53:
        double = float(value)
        is_held = int(double) == value or rfc8785.dumps(double) == b"%d" % value
        return double if is_held else value
    return value


def payload_hash(message: bytes) -> str:
    """`sha256:` and the hex digest of the canonical bytes."""
    return f"sha256:{hashlib.sha256(message).hexdigest()}"


def verifies(certificate_pem: str, message: bytes, signature: bytes) -> bool:
    """Return whether the certificate's key made this signature over these bytes."""
    key = x509.load_pem_x509_certificate(certificate_pem.encode("ascii")).public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        return False
    try:
        key.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True
