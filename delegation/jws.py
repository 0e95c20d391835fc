"""Compact JWS of exactly one kind: ES256, `typ` delegation+jwt, a `kid`, and nothing else in the header.

PyJWT does the mechanics. What it would let through is refused before it sees the token: duplicate JSON
names, padded or non-canonical base64url, and headers that bring a key of their own (`jwk jku x5u x5c`)
or ask for extensions (`crit`).
"""

import json
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from compliance.encodings import b64url_decode, b64url_encode
from delegation.rejections import Reason, TokenRejected

ALGORITHM = "ES256"
TYPE = "delegation+jwt"
HEADER_NAMES = frozenset({"alg", "typ", "kid"})
SIGNATURE_OCTETS = 64
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""SEC 2 §2.4.2. With a signature (r, s), (r, P256_ORDER - s) holds as well: only the lower s counts."""
MAX_LENGTH = 16_384
"""Characters of a token: the longest chain, scope and audience that can be issued fit (see the tests)."""

_mechanics = jwt.PyJWS(algorithms=[ALGORITHM])


@dataclass(frozen=True)
class Jws:
    """A token taken apart, its signature not yet checked: `payload` is to be believed only after `verify`."""

    text: str
    kid: str
    payload: dict[str, Any]
    signature: bytes


def sign(payload: dict[str, Any], *, kid: str, key: ec.EllipticCurvePrivateKey) -> str:
    """The compact serialization (RFC 7515 §3.1), with the lower s; raises what the key's token raises."""
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    token = _mechanics.encode(text.encode(), key, algorithm=ALGORITHM, headers={"typ": TYPE, "kid": kid})
    signed, _, signature = token.rpartition(".")
    return f"{signed}.{b64url_encode(with_lower_s(b64url_decode(signature)))}"


def parse(text: str) -> Jws:
    """Take a token apart without trusting it.

    Raises `TokenRejected`: `malformed` for what is no compact JWS of two JSON objects, or has a header that
    is not exactly ours; `unsupported_algorithm` for any other `alg`, `none` included.
    """
    segments = text.split(".")
    if len(text) > MAX_LENGTH or len(segments) != 3:
        raise TokenRejected(Reason.MALFORMED)
    header, payload = (_json_object(_decoded(segment)) for segment in segments[:2])
    signature = _decoded(segments[2])
    if header.get("alg") != ALGORITHM:
        raise TokenRejected(Reason.UNSUPPORTED_ALGORITHM)
    kid = header.get("kid")
    if set(header) != HEADER_NAMES or header["typ"] != TYPE or not isinstance(kid, str):
        raise TokenRejected(Reason.MALFORMED)
    return Jws(text, kid, payload, signature)


def verify(jws: Jws, key: ec.EllipticCurvePublicKey) -> dict[str, Any]:
    """The payload, once the signature over it holds; raises `TokenRejected(invalid_signature)`.

    Of the two signatures that hold for each one made, only the one that `sign` gives counts: a token has a
    single spelling.
    """
    if len(jws.signature) != SIGNATURE_OCTETS or jws.signature != with_lower_s(jws.signature):
        raise TokenRejected(Reason.INVALID_SIGNATURE)
    try:
        _mechanics.decode(jws.text, key, algorithms=[ALGORITHM])
    except jwt.PyJWTError as error:
        raise TokenRejected(Reason.INVALID_SIGNATURE) from error
    return jws.payload


def with_lower_s(signature: bytes) -> bytes:
    """The signature r ‖ s (RFC 7518 §3.4) with the lower of s and its negative.

    An s that is out of range stays as it is, and holds under no key.
    """
    half = SIGNATURE_OCTETS // 2
    s = int.from_bytes(signature[half:], "big")
    if not P256_ORDER // 2 < s < P256_ORDER:
        return signature
    return signature[:half] + (P256_ORDER - s).to_bytes(half, "big")


def _decoded(segment: str) -> bytes:
    try:
        return b64url_decode(segment)
    except ValueError as error:
        raise TokenRejected(Reason.MALFORMED) from error


def _json_object(octets: bytes) -> dict[str, Any]:
    try:
        value = json.loads(octets.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise TokenRejected(Reason.MALFORMED) from error
    if not isinstance(value, dict):
        raise TokenRejected(Reason.MALFORMED)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """RFC 7515 §4: names must be unique; parsers differ on which of two to believe."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
