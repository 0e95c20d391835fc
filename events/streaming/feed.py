"""Events in the order of their ids: what a transaction may still commit is waited for, not skipped."""

from datetime import datetime
from typing import Final
from uuid import UUID

from compliance.api.pagination import Feed, first_rows
from events.models import BehaviorEvent
from events.querysets import BehaviorEventQuerySet
from events.risk.rolling import settled_until

WINDOW: Final = 100_000
"""A page reads so many events at most, whosever they are."""


def events_from(
    position: UUID, events: BehaviorEventQuerySet, *, limit: int, now: datetime
) -> Feed[BehaviorEvent]:
    """Return those of `events` with ids from there on that no open transaction can precede."""
    settled = settled_until(now)
    end = BehaviorEvent.objects.id_after(WINDOW, low=position, high=settled) or settled
    if end <= position:
        return Feed([], position, False)
    within = events.filter(id__gte=position, id__lt=end).order_by("id")
    rows, has_more = first_rows(within, limit=limit, heavy="details")
    following = UUID(int=rows[-1].id.int + 1) if has_more else end
    return Feed(rows, following, following < settled)
