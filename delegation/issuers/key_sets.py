"""JSON Web Key Sets of issuers (RFC 7517), read strictly: public keys that sign, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt import PyJWTError
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from delegation.jose.holder_keys import PRIVATE_NAMES

MOST_KEYS: Final = 100
SMALLEST_RSA_KEY: Final = 2048
LARGEST_RSA_KEY: Final = 8192
"""Verifying takes longer with larger keys, and nobody signs with them."""

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey

_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_EC: Final = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
ALGORITHMS: Final = (*_RSA, *_EC.values(), "EdDSA")
"""Signatures that a tenant may allow: none of a shared secret, so a public key is never one."""


class InvalidKeySet(ValueError):
    """Not a JWK Set with a usable key; the text says why."""


@dataclass(frozen=True)
class IssuerKey:
    """A public key and the algorithms that it serves, by its type and curve and by its `alg`."""

    kid: str | None
    algorithms: frozenset[str]
    public: PublicKey


def read(document: Any) -> tuple[IssuerKey, ...]:
    """The usable keys of a JWK Set; others are left out. Raises: InvalidKeySet if there is none."""
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InvalidKeySet('must be an object with "keys", a list')
    if len(listed) > MOST_KEYS:
        raise InvalidKeySet(f"must hold at most {MOST_KEYS} keys")
    found = tuple(key for key in map(_read_key, listed) if key is not None)
    if not found:
        raise InvalidKeySet(
            "holds no public key that signs: RSA of 2048 to 8192 bits, P-256, P-384, P-521 or Ed25519"
        )
    return found


def candidates(keys: Sequence[IssuerKey], *, algorithm: str, kid: str | None) -> list[IssuerKey]:
    """The keys that may have made a signature; without a `kid` each that serves the algorithm."""
    return [key for key in keys if algorithm in key.algorithms and kid in (None, key.kid)]


def _read_key(jwk: Any) -> IssuerKey | None:
    if not isinstance(jwk, dict) or not PRIVATE_NAMES.isdisjoint(jwk):
        return None
    kid, stated, uses = jwk.get("kid"), jwk.get("alg"), jwk.get("key_ops", ["verify"])
    if jwk.get("use", "sig") != "sig" or not isinstance(uses, list) or "verify" not in uses:
        return None
    if not isinstance(kid, str | None) or not isinstance(stated, str | None):
        return None
    try:
        served, public = _public_key(jwk)
    except (PyJWTError, ValueError, TypeError, KeyError, AttributeError):
        return None
    algorithms = frozenset(name for name in served if stated in (None, name))
    return IssuerKey(kid, algorithms, public) if algorithms else None


def _public_key(jwk: dict[str, Any]) -> tuple[Sequence[str], PublicKey]:
    """The algorithms of a key by its type, and the key. Raises: ValueError and others for a malformed one."""
    kind = jwk.get("kty")
    key: Any
    if kind == "RSA":
        key = RSAAlgorithm.from_jwk(jwk)
        numbers = key.public_numbers()
        if not SMALLEST_RSA_KEY <= key.key_size <= LARGEST_RSA_KEY or numbers.e < 3 or numbers.e > 2**32:
            raise ValueError("an RSA key of a refused size")
        return _RSA, key
    if kind == "EC":
        return (_EC[jwk["crv"]],), ECAlgorithm.from_jwk(jwk)  # type: ignore[return-value]
    if kind == "OKP" and jwk.get("crv") == "Ed25519":
        return ("EdDSA",), OKPAlgorithm.from_jwk(jwk)  # type: ignore[return-value]
    raise ValueError("an unknown type of key")
