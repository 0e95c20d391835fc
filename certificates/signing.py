"""Signing messages: what is signed is canonical JSON (RFC 8785), never a caller's raw string.

A raw-string oracle would sign a JWT's signing input and so give away tokens under the agent's key; canonical
JSON starts with none of the characters that such an input starts with.
"""

import hashlib
from typing import Any, Final

import rfc8785
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from compliance.encodings import b64_decode, b64_encode
from compliance.errors import Invalid
from compliance.keys import SignatureAlgorithm

ALGORITHM: Final = SignatureAlgorithm.RSA_SHA256


def canonical(payload: Any) -> bytes:
    """The RFC 8785 form of a JSON value; `Invalid` for integers beyond ±(2^53 - 1), NaN and infinities."""
    try:
        return rfc8785.dumps(payload)
    except rfc8785.IntegerDomainError as error:
        raise Invalid("payload: integers beyond 2^53 - 1 can't be signed; send them as strings") from error
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise Invalid("payload: not representable as canonical JSON (RFC 8785)") from error


def payload_hash(message: bytes) -> str:
    """`sha256:` and the hex digest of the canonical bytes."""
    return f"sha256:{hashlib.sha256(message).hexdigest()}"


def encode_signature(signature: bytes) -> str:
    """Base64 as in RFC 4648 §4, padded."""
    return b64_encode(signature)


def decode_signature(text: str) -> bytes | None:
    """The signature that `text` spells; None if it is not canonical base64, so each has one spelling."""
    try:
        return b64_decode(text)
    except ValueError:
        return None


def verifies(certificate_pem: str, message: bytes, signature: bytes) -> bool:
    """Whether the certificate's key made this signature over these bytes."""
    key = x509.load_pem_x509_certificate(certificate_pem.encode("ascii")).public_key()
    if not isinstance(key, rsa.RSAPublicKey):
        return False
    try:
        key.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        return False
    return True
