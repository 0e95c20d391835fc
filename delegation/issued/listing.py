"""Issued tokens as a tenant sees them: the row, and its state now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from delegation.issued import rows
from delegation.jose.tokens import Delegation
from delegation.models import IssuedToken
from delegation.standing import standings
from delegation.standing_rule import NotStanding


class TokenState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ListedToken:
    """A token, its state now, and why it does not stand; `reason` None: it stands."""

    row: IssuedToken
    delegation: Delegation
    state: TokenState
    reason: NotStanding | None


def state_of(row: IssuedToken, *, stands: bool, now: datetime) -> TokenState:
    """The state by the row, and by whether it `stands` if it has not expired.

    A revoked token stays `revoked` when it expires.
    """
    if row.revoked_at is not None:
        return TokenState.REVOKED
    if row.has_expired(now):
        return TokenState.EXPIRED
    return TokenState.ACTIVE if stands else TokenState.STOPPED


def listed(found: Sequence[IssuedToken], *, now: datetime) -> list[ListedToken]:
    """Return the rows with their states at `now`, in order; one statement serves all of them."""
    delegations = [rows.delegation_of(row) for row in found]
    standing = standings(delegations, now=now)
    return [
        ListedToken(row, delegation, state_of(row, stands=one.stands, now=now), one.reason)
        for row, delegation, one in zip(found, delegations, standing, strict=True)
    ]
