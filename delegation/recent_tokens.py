"""Authentic tokens that this process verified before: their signatures hold for as long as their keys count.

Only what no forger can cause is kept. Issuer, times and the key are for the caller to check at each use.
"""

import hashlib
from typing import NamedTuple

from compliance.core.bounded_cache import BoundedCache
from delegation.jose.tokens import Delegation

KEPT = 1_000


class AuthenticToken(NamedTuple):
    """The claims of a token with a valid signature by the key `kid`."""

    kid: str
    delegation: Delegation


_verified: "BoundedCache[bytes, AuthenticToken]" = BoundedCache(KEPT)


def find(text: str) -> AuthenticToken | None:
    """The token with this text, if it was verified before."""
    return _verified.get(_digest(text))


def keep(text: str, token: AuthenticToken) -> None:
    """Keep a token whose signature was just verified."""
    _verified.put(_digest(text), token)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
