"""API keys that were looked up a moment ago, so that a busy caller doesn't cost a query for every request."""

from time import monotonic
from typing import TYPE_CHECKING

from compliance.bounded import Bounded
from compliance.environments import Environment

if TYPE_CHECKING:
    from compliance.tenancy.models import ApiKey

FRESH_SECONDS = 0.8
"""How long a key goes unchecked; a revoked one is refused by every process within a second."""
DUE_SECONDS = 0.4
KEPT = 10_000


class _Checked:
    """A key, when it was read, and whether somebody is reading it again."""

    def __init__(self, row: "ApiKey") -> None:
        self.row = row
        self.at = monotonic()
        self.is_being_checked = False


_checked: Bounded[tuple[Environment, str], _Checked] = Bounded(KEPT)


def find(environment: Environment, digest: str) -> "ApiKey | None":
    """The key of this digest as it was less than `FRESH_SECONDS` ago; None if it was not looked up since."""
    found = _checked.get((environment, digest))
    return found.row if found is not None and monotonic() < found.at + FRESH_SECONDS else None


def is_known(environment: Environment, digest: str) -> bool:
    """Whether the key was found valid the last time this process looked it up, however long ago."""
    return _checked.get((environment, digest)) is not None


def claim_check(environment: Environment, digest: str) -> bool:
    """Whether the key is due for another look; true once after each, so act upon it."""
    found = _checked.get((environment, digest))
    if found is None or found.is_being_checked or monotonic() < found.at + DUE_SECONDS:
        return False
    found.is_being_checked = True
    return True


def keep(environment: Environment, row: "ApiKey") -> None:
    """Vouch for a key that was just read."""
    _checked.put((environment, row.digest), _Checked(row))


def drop(environment: Environment, digest: str) -> None:
    """Look the key up again at its next use."""
    _checked.drop((environment, digest))
