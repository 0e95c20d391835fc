"""Nonces of DPoP proofs, stored nowhere: an HMAC of the time, rounded, under a key of the environment.

Every process with the same ENCRYPTION_KEYS makes and accepts the same nonces. A nonce counts in the interval
in which it was made and in the next one.
"""

import hmac
from collections.abc import Iterator
from datetime import datetime

from compliance.core import environments
from compliance.core.encodings import b64url_encode
from compliance.core.encryption import derived_keys

INTERVAL_SECONDS = 120


def current_nonce(*, now: datetime) -> str:
    """The nonce that the current environment hands out at `now`, for the header `DPoP-Nonce`."""
    return next(_nonces(now))


def is_accepted(nonce: str, *, now: datetime) -> bool:
    """Whether the nonce is the current environment's, of this interval or the last."""
    given = nonce.encode("utf-8", "surrogatepass")
    return any(hmac.compare_digest(given, known.encode()) for known in _nonces(now))


def _nonces(now: datetime) -> Iterator[str]:
    """The accepted nonces, the one to hand out first."""
    interval = int(now.timestamp()) // INTERVAL_SECONDS
    for key in derived_keys(f"dpop nonce {environments.current().value}"):
        for number in (interval, interval - 1):
            yield b64url_encode(hmac.digest(key, number.to_bytes(8, "big"), "sha256"))
