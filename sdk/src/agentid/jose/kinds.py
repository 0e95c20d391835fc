"""The header of delegation tokens (docs/delegation.md)."""

from typing import Final

DELEGATION: Final = "delegation+jwt"
HEADER_NAMES: Final = frozenset({"alg", "typ", "kid"})
