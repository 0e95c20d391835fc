"""Public token keys as JSON Web Keys (RFC 7517), named by their thumbprints (RFC 7638)."""

import hashlib
import json

from cryptography.hazmat.primitives.asymmetric import ec

from compliance.encodings import b64url_decode, b64url_encode
from compliance.keys.base import PublicKey
from delegation.jws import ALGORITHM

COORDINATE_OCTETS = 32

Jwk = dict[str, str]


def public_jwk(key: PublicKey) -> Jwk:
    """The JWK of a P-256 key, as published: `kty crv x y` with `kid`, `alg` and `use`.

    ValueError for a key of another kind or curve. Coordinates are 32 octets, leading zeros kept
    (RFC 7518 §6.2.1).
    """
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != ec.SECP256R1.name:
        raise ValueError("Token keys are on P-256")
    point = key.public_numbers()
    bare = {
        "crv": "P-256",
        "kty": "EC",
        "x": b64url_encode(point.x.to_bytes(COORDINATE_OCTETS, "big")),
        "y": b64url_encode(point.y.to_bytes(COORDINATE_OCTETS, "big")),
    }
    return {**bare, "kid": thumbprint(bare), "alg": ALGORITHM, "use": "sig"}


def thumbprint(jwk: Jwk) -> str:
    """RFC 7638 §3: SHA-256 over the required members in lexical order, without white space."""
    required = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    text = json.dumps(required, sort_keys=True, separators=(",", ":"))
    return b64url_encode(hashlib.sha256(text.encode()).digest())


def public_key(jwk: Jwk) -> ec.EllipticCurvePublicKey:
    """The key that a published JWK describes; ValueError when the point is not on the curve."""
    x, y = (int.from_bytes(b64url_decode(jwk[name]), "big") for name in ("x", "y"))
    return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
