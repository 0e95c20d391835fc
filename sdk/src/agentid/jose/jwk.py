"""P-256 keys as JSON Web Keys (RFC 7517), and their thumbprints (RFC 7638)."""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from agentid.jose.encodings import b64url_decode, b64url_encode
from agentid.reasons import NotValid, Reason

COORDINATE_OCTETS = 32


def public_jwk(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    """The members that make the key."""
    numbers = key.public_numbers()
    x, y = (b64url_encode(number.to_bytes(COORDINATE_OCTETS)) for number in (numbers.x, numbers.y))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


def thumbprint(key: ec.EllipticCurvePublicKey) -> str:
    """The RFC 7638 §3 thumbprint: SHA-256 over the required members in lexical order."""
    return b64url_encode(sha256(json.dumps(public_jwk(key), separators=(",", ":")).encode()).digest())


def public_key(jwk: Mapping[str, Any]) -> ec.EllipticCurvePublicKey:
    """Read a public P-256 key. Raises: NotValid (malformed) for another kind, and for a private key."""
    if jwk.get("kty") != "EC" or jwk.get("crv") != "P-256" or "d" in jwk:
        raise NotValid(Reason.MALFORMED, "not a public key on P-256")
    x, y = jwk.get("x"), jwk.get("y")
    if not isinstance(x, str) or not isinstance(y, str):
        raise NotValid(Reason.MALFORMED, "a key without coordinates")
    octets = b64url_decode(x), b64url_decode(y)
    if any(len(each) != COORDINATE_OCTETS for each in octets):
        raise NotValid(Reason.MALFORMED, "a coordinate of another length")
    try:
        return ec.EllipticCurvePublicNumbers(
            int.from_bytes(octets[0]), int.from_bytes(octets[1]), ec.SECP256R1()
        ).public_key()
    except ValueError:
        raise NotValid(Reason.MALFORMED, "not a point of P-256") from None
