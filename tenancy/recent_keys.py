"""API keys that this process looked up a moment ago, so that a busy caller costs few queries."""

from time import monotonic
from typing import TYPE_CHECKING

from compliance.core.bounded_cache import BoundedCache
from compliance.core.environments import Environment

if TYPE_CHECKING:
    from tenancy.models import ApiKey

FRESH_SECONDS = 0.8
"""How long a key is not looked up again; every process refuses a revoked one within a second."""
RENEWED_SECONDS = 0.4
"""How old a key in use gets before it is looked up beside the requests, so that none has to wait for it."""
KEPT = 10_000

_checked: "BoundedCache[tuple[Environment, str], tuple[float, ApiKey]]" = BoundedCache(KEPT)


def find(environment: Environment, digest: str) -> "ApiKey | None":
    """The key of this digest as it was less than `FRESH_SECONDS` ago; None if it was not looked up since."""
    found = _checked.get((environment, digest))
    return found[1] if found is not None and monotonic() < found[0] + FRESH_SECONDS else None


def is_known(environment: Environment, digest: str) -> bool:
    """Return whether the key was valid when this process last looked it up, however long ago."""
    return _checked.get((environment, digest)) is not None


def is_due(environment: Environment, digest: str) -> bool:
    """Return whether a key that is still fresh had better be looked up now."""
    found = _checked.get((environment, digest))
    return found is not None and monotonic() >= found[0] + RENEWED_SECONDS


def keep(environment: Environment, row: "ApiKey", *, read_at: float) -> None:
    """Keep a key that was read after `read_at`, in seconds of the monotonic clock.

    A slow answer is old when it arrives: the key may have been revoked since.
    """
    _checked.put((environment, row.digest), (read_at, row))


def drop(environment: Environment, digest: str) -> None:
    """Look the key up again at its next use."""
    _checked.drop((environment, digest))
