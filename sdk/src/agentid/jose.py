"""Strict JSON, base64, P-256 keys (RFC 7517) and compact JWS: one algorithm, one spelling."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from agentid.errors import NotValid, Reason

LATEST_TIME: Final = 253_402_300_799  # the last second that a datetime can hold
T = TypeVar("T")


def b64url_encode(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def b64url_decode(text: str) -> bytes:
    """Decode unpadded base64url in its canonical form. Raises: NotValid (malformed)."""
    if "=" in text or "+" in text or "/" in text:
        raise NotValid(Reason.MALFORMED, "not base64url")
    return b64_decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))


def b64_decode(text: str) -> bytes:
    """Decode padded base64 in its canonical form. Raises: NotValid (malformed)."""
    try:
        octets = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise NotValid(Reason.MALFORMED, "not base64") from None
    if base64.b64encode(octets).decode() != text:
        raise NotValid(Reason.MALFORMED, "not canonical base64")
    return octets


def read_json(text: bytes | str) -> Any:
    """Read JSON without duplicate names, NaN or infinities. Raises: NotValid (malformed)."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(decoded, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise NotValid(Reason.MALFORMED, "not JSON, or a name twice in one object") from None


def read_object(text: bytes | str) -> dict[str, Any]:
    """Read a JSON object. Raises: NotValid (malformed)."""
    value = read_json(text)
    if not isinstance(value, dict):
        raise NotValid(Reason.MALFORMED, "not a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name")
    return found


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


COORDINATE_OCTETS = 32


def public_jwk(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    """The members that make the key."""
    numbers = key.public_numbers()
    x, y = (b64url_encode(number.to_bytes(COORDINATE_OCTETS)) for number in (numbers.x, numbers.y))
    return {"crv": "P-256", "kty": "EC", "x": x, "y": y}


def thumbprint(key: ec.EllipticCurvePublicKey | Mapping[str, str]) -> str:
    """The RFC 7638 §3 thumbprint: SHA-256 over the required members in lexical order.

    A JWK is taken as it is: give it those members in that order, as `public_jwk` does.
    """
    jwk = public_jwk(key) if isinstance(key, ec.EllipticCurvePublicKey) else key
    return b64url_encode(sha256(json.dumps(jwk, separators=(",", ":")).encode()).digest())


def public_key(jwk: Mapping[str, Any]) -> ec.EllipticCurvePublicKey:
    """Read a public P-256 key. Raises: NotValid (malformed) for another kind, and for a private key."""
    if jwk.get("kty") != "EC" or jwk.get("crv") != "P-256" or "d" in jwk:
        raise NotValid(Reason.MALFORMED, "not a public key on P-256")
    octets = [b64url_decode(claim(jwk, name, str)) for name in ("x", "y")]
    if any(len(each) != COORDINATE_OCTETS for each in octets):
        raise NotValid(Reason.MALFORMED, "a coordinate of another length")
    x, y = map(int.from_bytes, octets)
    try:
        return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    except ValueError:
        raise NotValid(Reason.MALFORMED, "not a point of P-256") from None


DELEGATION: Final = "delegation+jwt"
HEADER_NAMES: Final = frozenset({"alg", "typ", "kid"})
"""The header of tokens, signals and status lists of the service."""
ALGORITHM: Final = "ES256"
SIGNATURE_OCTETS: Final = 64
P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
MAX_LENGTH: Final = 65_536


@dataclass(frozen=True)
class Jws:
    """A parsed text; nothing in it is to be trusted before `check_signature`."""

    header: Mapping[str, Any]
    payload: Mapping[str, Any]
    signed: bytes
    signature: bytes


def parse(text: str, *, kind: str, names: frozenset[str], max_length: int = MAX_LENGTH) -> Jws:
    """Parse a JWS whose header has exactly these names, and `typ` this kind.

    Raises: NotValid (malformed, unsupported_algorithm).
    """
    segments = text.split(".")
    if len(text) > max_length or len(segments) != 3 or not text.isascii():
        raise NotValid(Reason.MALFORMED, "not a compact JWS")
    header, payload = (read_object(b64url_decode(segment)) for segment in segments[:2])
    signature = b64url_decode(segments[2])
    if header.get("alg") != ALGORITHM:
        raise NotValid(Reason.UNSUPPORTED_ALGORITHM, "only ES256 is accepted")
    if set(header) != names or header["typ"] != kind:
        raise NotValid(Reason.MALFORMED, f"the header is not that of a {kind}")
    return Jws(header, payload, text.rpartition(".")[0].encode(), signature)


def check_signature(jws: Jws, key: ec.EllipticCurvePublicKey, *, lower_s: bool = True) -> None:
    """Raise NotValid (invalid_signature) unless the key made it, by default with the lower *s*."""
    half = SIGNATURE_OCTETS // 2
    r, s = (int.from_bytes(part) for part in (jws.signature[:half], jws.signature[half:]))
    if len(jws.signature) != SIGNATURE_OCTETS or (lower_s and s > P256_ORDER // 2):
        raise NotValid(Reason.INVALID_SIGNATURE)
    try:
        key.verify(encode_dss_signature(r, s), jws.signed, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise NotValid(Reason.INVALID_SIGNATURE) from None


def key_id(text: str, *, kind: str) -> str:
    """The `kid` of a JWS of the service, to look its key up. Raises: NotValid."""
    return claim(parse(text, kind=kind, names=HEADER_NAMES).header, "kid", str)


def signed_claims(
    text: str, *, kind: str, keys: Mapping[str, ec.EllipticCurvePublicKey], max_length: int
) -> Mapping[str, Any]:
    """The claims of a JWS that one of these keys of the service signed. Raises: NotValid."""
    parsed = parse(text, kind=kind, names=HEADER_NAMES, max_length=max_length)
    key = keys.get(claim(parsed.header, "kid", str))
    if key is None:
        raise NotValid(Reason.UNKNOWN_KEY)
    check_signature(parsed, key)
    return parsed.payload


def claim(values: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """A member of exactly this kind. Raises: NotValid (malformed)."""
    value = values.get(name)
    if type(value) is not kind:
        raise NotValid(Reason.MALFORMED, f"{name} is missing or of another kind")
    return value


def moment(values: Mapping[str, Any], name: str) -> datetime:
    """A member that is a time in whole Unix seconds. Raises: NotValid (malformed)."""
    value = claim(values, name, int)
    if not 0 <= value <= LATEST_TIME:
        raise NotValid(Reason.MALFORMED, f"{name} is out of range")
    return datetime.fromtimestamp(value, UTC)
