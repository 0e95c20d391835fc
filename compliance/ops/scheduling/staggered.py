"""Periods that don't begin together: tasks sent all at once make everything else wait for a processor."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from math import floor

from celery.schedules import schedstate, schedule


class Staggered(schedule):
    """Due at the Unix times `offset`, `offset + period` and so on (seconds), however late the last was."""

    def __init__(self, period: float, offset: float) -> None:
        super().__init__(period)
        self.offset = offset

    def remaining_estimate(self, last_run_at: datetime) -> timedelta:
        """Return the time until the next run is due; zero or less when it is."""
        last = self.maybe_make_aware(last_run_at).timestamp()
        runs = floor((last - self.offset) / self.seconds) + 1
        now = self.maybe_make_aware(self.now()).timestamp()
        return timedelta(seconds=self.offset + runs * self.seconds - now)

    def is_due(self, last_run_at: datetime) -> schedstate:
        """Return whether it is due, and the seconds until it is to be asked again."""
        remaining = self.remaining_estimate(last_run_at).total_seconds()
        if remaining > 0:
            return schedstate(is_due=False, next=remaining)
        return schedstate(is_due=True, next=self.remaining_estimate(self.now()).total_seconds())

    def __reduce__(self) -> tuple[type, tuple[float, float]]:
        return type(self), (self.seconds, self.offset)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Staggered) and (self.seconds, self.offset) == (other.seconds, other.offset)

    def __hash__(self) -> int:
        return hash((self.seconds, self.offset))


def staggered(periods: Mapping[str, float]) -> dict[str, Staggered]:
    """Return a schedule for each name and its seconds; those of one period spread evenly over it."""
    alike: dict[float, list[str]] = {}
    for name, period in sorted(periods.items()):
        alike.setdefault(period, []).append(name)
    return {
        name: Staggered(period, (place + 0.5) / len(names) * period)
        for period, names in alike.items()
        for place, name in enumerate(names)
    }
