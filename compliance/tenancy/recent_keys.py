"""API keys that were looked up a moment ago, so that a busy caller doesn't cost a query for every request."""

from time import monotonic
from typing import TYPE_CHECKING

from compliance.bounded import Bounded
from compliance.environments import Environment

if TYPE_CHECKING:
    from compliance.tenancy.models import ApiKey

FRESH_SECONDS = 0.8
"""How long a key goes unchecked; a revoked one is refused by every process within a second."""
KEPT = 10_000

_checked: "Bounded[tuple[Environment, str], tuple[ApiKey, float]]" = Bounded(KEPT)


def find(environment: Environment, digest: str) -> "ApiKey | None":
    """The key of this digest as it was less than `FRESH_SECONDS` ago; None if it was not looked up since."""
    found = _checked.get((environment, digest))
    return found[0] if found is not None and monotonic() < found[1] else None


def keep(environment: Environment, row: "ApiKey") -> None:
    """Vouch for a key that was just read."""
    _checked.put((environment, row.digest), (row, monotonic() + FRESH_SECONDS))


def drop(environment: Environment, row: "ApiKey") -> None:
    """Look the key up again at its next use."""
    _checked.drop((environment, row.digest))
