"""Public token keys as JSON Web Keys (RFC 7517), named by their thumbprints (RFC 7638)."""

import hashlib
import json
from typing import cast

from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from compliance.core.encodings import b64url_encode
from compliance.keys.base import PublicKey
from delegation.jose.jws import ALGORITHM

Jwk = dict[str, str]


def public_jwk(key: PublicKey) -> Jwk:
    """The JWK of a P-256 key, as published; raises ValueError for a key of another kind or curve."""
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != ec.SECP256R1.name:
        raise ValueError("Token keys are on P-256")
    bare = ECAlgorithm.to_jwk(key, as_dict=True)
    jwk = {name: bare[name] for name in ("crv", "kty", "x", "y")}
    return {**jwk, "kid": thumbprint(jwk), "alg": ALGORITHM, "use": "sig"}


def thumbprint(jwk: Jwk) -> str:
    """The RFC 7638 §3 thumbprint: SHA-256 over the required members in lexical order."""
    required = {name: jwk[name] for name in ("crv", "kty", "x", "y")}
    text = json.dumps(required, separators=(",", ":"))
    return b64url_encode(hashlib.sha256(text.encode()).digest())


def public_key(jwk: Jwk) -> ec.EllipticCurvePublicKey:
    return cast("ec.EllipticCurvePublicKey", ECAlgorithm.from_jwk(jwk))
