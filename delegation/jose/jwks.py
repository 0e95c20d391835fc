"""Public token keys as JSON Web Keys (RFC 7517), named by their thumbprints (RFC 7638)."""

from typing import cast

from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from compliance.keys.base import PublicKey
from delegation.jose.holder_keys import thumbprint
from delegation.jose.jws import ALGORITHM

Jwk = dict[str, str]


def public_jwk(key: PublicKey) -> Jwk:
    """The JWK of a P-256 key, as published; raises ValueError for a key of another kind or curve."""
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != ec.SECP256R1.name:
        raise ValueError("Token keys are on P-256")
    bare = ECAlgorithm.to_jwk(key, as_dict=True)
    jwk = {name: bare[name] for name in ("crv", "kty", "x", "y")}
    return {**jwk, "kid": thumbprint(jwk), "alg": ALGORITHM, "use": "sig"}


def public_key(jwk: Jwk) -> ec.EllipticCurvePublicKey:
    return cast("ec.EllipticCurvePublicKey", ECAlgorithm.from_jwk(jwk))
