"""Partitions the events table should have: calendar spans around what exists already. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from uuid import UUID

from compliance.core.identifiers import first_id_at

TABLE = "events_behaviorevent"
AHEAD = 3  # partitions made ahead of the present one
DAY = timedelta(days=1)


class Span(StrEnum):
    """The time a partition covers; calendar spans in UTC, weeks from Monday."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    def start(self, moment: datetime) -> datetime:
        day = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is Span.DAY:
            return day
        return day - timedelta(days=day.weekday()) if self is Span.WEEK else day.replace(day=1)

    def end(self, moment: datetime) -> datetime:
        return self.start(
            self.start(moment) + {Span.DAY: DAY, Span.WEEK: 7 * DAY, Span.MONTH: 31 * DAY}[self]
        )


@dataclass(frozen=True)
class Partition:
    """Holds the ids made from `start` until `end`."""

    name: str
    start: datetime
    end: datetime

    @classmethod
    def over(cls, start: datetime, end: datetime) -> "Partition":
        """The one to be made for that time, named after its beginning."""
        suffix = f"{start:%Y%m%d}" if start == Span.DAY.start(start) else f"{start:%Y%m%d_%H%M%S}"
        return cls(f"{TABLE}_{suffix}", start, end)

    @property
    def bounds(self) -> tuple[UUID, UUID]:
        return first_id_at(self.start), first_id_at(self.end)


def missing(existing: Iterable[Partition], *, now: datetime, span: Span) -> list[Partition]:
    """Return the spans to make so that the present one and `AHEAD` more are covered, around what exists."""
    known = list(existing)
    position = limit = span.start(now)
    for _ in range(AHEAD + 1):
        limit = span.end(limit)
    found = []
    while position < limit:
        holder = next((one for one in known if one.start <= position < one.end), None)
        if holder is None:
            found.append(gap(known, at=position, span=span))
        position = (holder or found[-1]).end
    return found


def gap(existing: Iterable[Partition], *, at: datetime, span: Span) -> Partition:
    """The span that holds `at`, less what its neighbours cover; none of them may hold `at` itself."""
    known = list(existing)
    start = max([span.start(at), *(one.end for one in known if one.end <= at)])
    end = min([span.end(at), *(one.start for one in known if one.start > at)])
    return Partition.over(start, end)
