"""Delegation tokens whose signature this process has verified, so that each is verified once.

A token enters after its signature was verified, so a forger can't fill the cache. At each use the caller
checks what may have changed: whether the key still counts, the issuer, and the times.
"""

import hashlib
from typing import NamedTuple

from compliance.core.bounded_cache import BoundedCache
from delegation.jose.tokens import Delegation

KEPT = 1_000
"""Tokens kept in each process; the oldest go first."""


class AuthenticToken(NamedTuple):
    """The delegation of a token that the key `kid` has signed."""

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
