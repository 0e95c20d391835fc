"""Issued tokens as a tenant sees them: the row, and its state now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from compliance.api.pagination import Cursor, Page, keyset_page
from compliance.stores import sql
from delegation import standing
from delegation.models import IssuedToken
from delegation.querysets import IssuedTokenQuerySet
from delegation.standing import NotStanding

_LISTED: Final = f"""
SELECT id, id, ancestor_ids, lineage_agent_ids, lineage_serials
FROM {standing.TABLE} WHERE id = ANY($2::uuid[])
"""  # noqa: S608  (only the name of a table is put into the text)
MOST_LOOKED_AT: Final = 10_000
"""How many tokens are looked at together, for a page of few among many."""


class TokenState(StrEnum):
    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"
    STOPPED = "stopped"


@dataclass(frozen=True)
class ListedToken:
    """A token, its state now, and why it does not stand; `reason` None: it stands."""

    row: IssuedToken
    state: TokenState
    reason: NotStanding | None


def listed(found: Sequence[IssuedToken], *, now: datetime) -> list[ListedToken]:
    """Return the rows with their states, in order; a revoked token stays `revoked` when it expires."""
    shown = []
    for row, one in zip(found, standing.standings(found, now=now), strict=True):
        state = TokenState.ACTIVE if one.stands else TokenState.STOPPED
        if row.revoked_at is not None:
            state = TokenState.REVOKED
        elif row.has_expired(now):
            state = TokenState.EXPIRED
        shown.append(ListedToken(row, state, one.reason))
    return shown


def page_by_standing(
    found: IssuedTokenQuerySet, *, is_wanted: bool, cursor: Cursor | None, limit: int, now: datetime
) -> Page[IssuedToken]:
    """Return the page as `keyset_page`, of the tokens that stand or, unless that `is_wanted`, do not."""
    if is_wanted:
        found = found.unexpired(now).filter(revoked_at=None)
    keys = found.only("issued_at", "expires_at", "revoked_at")
    kept: list[IssuedToken] = []
    size = limit + 1
    while True:
        looked = keyset_page(keys, cursor=cursor, limit=size, field="issued_at")
        ended = _ended(looked.rows, now)
        kept += [one for one in looked.rows if (one.pk not in ended) is is_wanted]
        if looked.next_cursor is None or len(kept) > limit:
            break
        cursor, size = Cursor.parse(looked.next_cursor), min(4 * size, MOST_LOOKED_AT)
    shown = kept[:limit]
    whole = found.in_bulk([one.pk for one in shown])
    last = str(Cursor(shown[-1].issued_at, shown[-1].pk)) if len(kept) > limit else None
    return Page([whole[one.pk] for one in shown if one.pk in whole], last)


def _ended(looked: Sequence[IssuedToken], now: datetime) -> set[UUID]:
    """Return those of the tokens that do not stand."""
    ended = {one.pk for one in looked if one.revoked_at is not None or one.has_expired(now)}
    asked = [one.pk for one in looked if one.pk not in ended]
    return ended.union(standing.ended(_LISTED, sql.array(asked), now=now)) if asked else ended
