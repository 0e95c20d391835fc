"""Public keys that holders of tokens make and send as JWK: P-256 for ES256, Ed25519 for EdDSA; no others."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from compliance.core.encodings import b64url_decode, b64url_encode

ES256, EDDSA, ED25519 = "ES256", "EdDSA", "Ed25519"
ALGORITHMS = (ES256, EDDSA, ED25519)
"""The `alg` of a holder's signature; Ed25519 is RFC 9864's name for EdDSA with that curve."""
COORDINATE_OCTETS = 32
SIGNATURE_OCTETS = 64
PRIVATE_NAMES = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Members of private and symmetric keys (RFC 7518 §6)."""
REQUIRED_NAMES = MappingProxyType(
    {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
)
"""The members of a thumbprint in lexical order (RFC 7638 §3.2, RFC 8037 §2)."""
_PRIME = 2**255 - 19
_Y_OF_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
SMALL_ORDER = frozenset({0, 1, _PRIME - 1, _Y_OF_ORDER_8, _PRIME - _Y_OF_ORDER_8})
"""The y of the points of edwards25519 whose order divides 8: anybody can sign for such a key."""
KEPT = 1_000
"""Keys of each curve that a process keeps parsed: all proofs of an agent carry the same key."""
_ECDSA = ec.ECDSA(SHA256())


@dataclass(frozen=True)
class HolderKey:
    """A holder's public key for one algorithm, and its thumbprint."""

    algorithm: str
    key: ec.EllipticCurvePublicKey | Ed25519PublicKey
    jkt: str

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether `signature`, in the form of RFC 7518 §3.4 or RFC 8037 §3.1, is this key's of `message`."""
        if len(signature) != SIGNATURE_OCTETS:
            return False
        try:
            if isinstance(self.key, Ed25519PublicKey):
                self.key.verify(signature, message)
            else:
                r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
                self.key.verify(encode_dss_signature(r, s), message, _ECDSA)
        except InvalidSignature:
            return False
        return True


def holder_key(jwk: Mapping[str, Any], *, algorithm: str) -> HolderKey:
    """The key of a public JWK (RFC 7517) that is for `algorithm`; ValueError for any other."""
    if not PRIVATE_NAMES.isdisjoint(jwk):
        raise ValueError("the key is not public")
    _check_purpose(jwk, algorithm)
    if algorithm == ES256:
        if jwk.get("kty") != "EC" or jwk.get("crv") != "P-256":
            raise ValueError("the key is not on P-256")
        return _p256(_text(jwk.get("x")), _text(jwk.get("y")))
    if algorithm in (EDDSA, ED25519):
        if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519":
            raise ValueError("the key is not on Ed25519")
        return _ed25519(algorithm, _text(jwk.get("x")))
    raise ValueError("no such algorithm")


def thumbprint(jwk: Mapping[str, Any]) -> str:
    """The RFC 7638 §3 thumbprint: SHA-256 over the required members in lexical order."""
    required = {name: jwk[name] for name in REQUIRED_NAMES[jwk["kty"]]}
    return b64url_encode(hashlib.sha256(json.dumps(required, separators=(",", ":")).encode()).digest())


def _check_purpose(jwk: Mapping[str, Any], algorithm: str) -> None:
    operations = jwk.get("key_ops", ["verify"])
    if jwk.get("use", "sig") != "sig" or not isinstance(operations, list) or "verify" not in operations:
        raise ValueError("the key is not for signatures")
    if jwk.get("alg", algorithm) != algorithm:
        raise ValueError("the key is for another algorithm")


@lru_cache(maxsize=KEPT)
def _p256(x: str, y: str) -> HolderKey:
    point = b"\x04" + _coordinate(x) + _coordinate(y)
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    return HolderKey(ES256, key, thumbprint({"crv": "P-256", "kty": "EC", "x": x, "y": y}))


@lru_cache(maxsize=KEPT)
def _ed25519(algorithm: str, x: str) -> HolderKey:
    octets = _coordinate(x)
    # RFC 8032 §5.1.2: little-endian, the highest bit is the sign of the point's x.
    if int.from_bytes(octets, "little") % 2**255 % _PRIME in SMALL_ORDER:
        raise ValueError("the key is a point of small order")
    key = Ed25519PublicKey.from_public_bytes(octets)
    return HolderKey(algorithm, key, thumbprint({"crv": "Ed25519", "kty": "OKP", "x": x}))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a coordinate is text")  # noqa: TRY004  (callers catch ValueErrors)
    return value


def _coordinate(text: str) -> bytes:
    if len(octets := b64url_decode(text)) != COORDINATE_OCTETS:
        raise ValueError("a coordinate has 32 octets")
    return octets
