"""Compact JWS of one kind only: ES256, a `typ`, a `kid`, and nothing else in the header.

PyJWT signs and verifies. Before it verifies, `compact` parses strictly, and `parse` refuses headers that
bring a key (`jwk jku x5u x5c`) or ask for extensions (`crit`).
"""

import json
from typing import Any, cast

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from compliance.core.encodings import b64url_decode, b64url_encode
from compliance.keys.base import PublicKey
from delegation.errors import RejectionReason, TokenRejected
from delegation.jose import compact
from delegation.jose.compact import CompactJws
from delegation.jose.holder_keys import thumbprint

ALGORITHM = "ES256"
TYPE = "delegation+jwt"
HEADER_NAMES = frozenset({"alg", "typ", "kid"})
SIGNATURE_OCTETS = 64
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""SEC 2 §2.4.2. If (r, s) is a valid signature, so is (r, P256_ORDER - s); only the lower s is accepted."""
MAX_LENGTH = 18_432
"""Characters of a token: room for the longest chain, scope, audience and root that can be issued."""

_pyjws = jwt.PyJWS(algorithms=[ALGORITHM])


def sign(
    payload: dict[str, Any], *, kid: str, key: ec.EllipticCurvePrivateKey, typ: str = TYPE, **more: str
) -> str:
    """The compact serialization (RFC 7515 §3.1), with the lower s; raises what the key raises.

    `more`: other members of the header; `parse` takes none.
    """
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    headers = {"typ": typ, "kid": kid, **more}
    token = _pyjws.encode(text.encode(), key, algorithm=ALGORITHM, headers=headers)
    signed, _, signature = token.rpartition(".")
    return f"{signed}.{b64url_encode(with_lower_s(b64url_decode(signature)))}"


def parse(text: str, *, typ: str = TYPE, max_length: int = MAX_LENGTH) -> CompactJws:
    """Parse a token without trusting it; raises `TokenRejected(malformed | unsupported_algorithm)`."""
    try:
        parsed = compact.parse(text, max_length=max_length)
    except ValueError as error:
        raise TokenRejected(RejectionReason.MALFORMED) from error
    header = parsed.header
    if header.get("alg") != ALGORITHM:
        raise TokenRejected(RejectionReason.UNSUPPORTED_ALGORITHM)
    if set(header) != HEADER_NAMES or header["typ"] != typ or not isinstance(header["kid"], str):
        raise TokenRejected(RejectionReason.MALFORMED)
    return parsed


def verify(jws: CompactJws, key: ec.EllipticCurvePublicKey) -> dict[str, Any]:
    """The payload, if the signature is valid; raises `TokenRejected(invalid_signature)`."""
    if len(jws.signature) != SIGNATURE_OCTETS or jws.signature != with_lower_s(jws.signature):
        raise TokenRejected(RejectionReason.INVALID_SIGNATURE)
    try:
        _pyjws.decode(jws.text, key, algorithms=[ALGORITHM])
    except jwt.PyJWTError as error:
        raise TokenRejected(RejectionReason.INVALID_SIGNATURE) from error
    return jws.payload


def with_lower_s(signature: bytes) -> bytes:
    """The signature r ‖ s (RFC 7518 §3.4) with the lower of s and its negative; an invalid s stays."""
    half = SIGNATURE_OCTETS // 2
    s = int.from_bytes(signature[half:], "big")
    if not P256_ORDER // 2 < s < P256_ORDER:
        return signature
    return signature[:half] + (P256_ORDER - s).to_bytes(half, "big")


def public_jwk(key: PublicKey) -> dict[str, str]:
    """The JWK (RFC 7517) of a P-256 key, as published; raises ValueError for another kind or curve."""
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != ec.SECP256R1.name:
        raise ValueError("Token keys are on P-256")
    bare = ECAlgorithm.to_jwk(key, as_dict=True)
    jwk = {name: bare[name] for name in ("crv", "kty", "x", "y")}
    return {**jwk, "kid": thumbprint(jwk), "alg": ALGORITHM, "use": "sig"}


def public_key(jwk: dict[str, str]) -> ec.EllipticCurvePublicKey:
    return cast("ec.EllipticCurvePublicKey", ECAlgorithm.from_jwk(jwk))
