"""Issued tokens as a tenant sees them: the row, and its state now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from delegation.issued import rows
from delegation.jose.tokens import Delegation
from delegation.models import IssuedToken
from delegation.standing import NotStanding, standings


class TokenState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ListedToken:
    """A token and why it does not stand now; `reason` None: it stands."""

    row: IssuedToken
    delegation: Delegation
    reason: NotStanding | None

    @property
    def state(self) -> TokenState:
        """The state in one word; a revoked token stays `revoked` when it expires."""
        if self.row.revoked_at is not None:
            return TokenState.REVOKED
        if self.reason is None:
            return TokenState.ACTIVE
        return TokenState.EXPIRED if self.reason is NotStanding.EXPIRED else TokenState.STOPPED


def state_of(row: IssuedToken, *, stands: bool, now: datetime) -> TokenState:
    """The state by the row, and by whether it `stands` if it has not expired."""
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
        ListedToken(row, delegation, one.reason)
        for row, delegation, one in zip(found, delegations, standing, strict=True)
    ]
