"""Events in the order of their ids: what a transaction may still commit is waited for, not skipped."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from compliance.api.pagination import first_rows
from events.models import BehaviorEvent
from events.querysets import BehaviorEventQuerySet
from events.risk.rolling import settled_until

WINDOW: Final = 100_000
"""A page reads so many events at most, whosever they are."""


@dataclass(frozen=True)
class EventPage:
    """Events by id, oldest first; `position` is the lowest id that the next page may begin with."""

    events: Sequence[BehaviorEvent]
    position: UUID
    has_next: bool


def events_from(position: UUID, events: BehaviorEventQuerySet, *, limit: int, now: datetime) -> EventPage:
    """Return those of `events` from the position on that no open transaction can precede any more."""
    settled = settled_until(now)
    end = BehaviorEvent.objects.id_after(WINDOW, low=position, high=settled) or settled
    if end <= position:
        return EventPage([], position, False)
    within = events.filter(id__gte=position, id__lt=end).order_by("id")
    rows, has_more = first_rows(within, limit=limit, heavy="details")
    following = UUID(int=rows[-1].id.int + 1) if has_more else end
    return EventPage(rows, following, following < settled)
