"""Calendar periods in UTC: months and quarters as schedules report them, and the presets of the console."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta

from reports.vocabulary import Cadence

MONTHS = {Cadence.MONTH: 1, Cadence.QUARTER: 3}
DAY = timedelta(days=1)


def start_of(cadence: Cadence, moment: datetime) -> datetime:
    """Return the start of the period that holds `moment`."""
    months = MONTHS[cadence]
    return datetime(moment.year, (moment.month - 1) // months * months + 1, 1, tzinfo=UTC)


def following(cadence: Cadence, start: datetime) -> datetime:
    """Return the start of the period after the one that begins at `start`."""
    return start_of(cadence, start + timedelta(days=31 * MONTHS[cadence]))


def last(cadence: Cadence, today: date) -> tuple[date, date]:
    """Return the first and the last day of the last period that is over."""
    this = start_of(cadence, datetime.combine(today, time(), UTC))
    return start_of(cadence, this - DAY).date(), (this - DAY).date()


def end_of(day: date, now: datetime) -> datetime:
    """Return the end of a period whose last day is `day`: midnight after it, or for today the present."""
    return now if day == now.date() else datetime.combine(day + DAY, time(), UTC)


def in_words(start: datetime, end: datetime) -> str:
    """Return the period [start, end) by its first and its last day, with the time where it cuts a day."""
    start, end = start.astimezone(UTC), end.astimezone(UTC)
    first = f"{start:%Y-%m-%d}" if start.time() == time() else f"{start:%Y-%m-%d %H:%M}"
    return f"{first} to " + (f"{end - DAY:%Y-%m-%d}" if end.time() == time() else f"{end:%Y-%m-%d %H:%M}")


PRESETS: dict[str, tuple[str, Callable[[date], tuple[date, date]]]] = {
    "month": ("Last month", lambda today: last(Cadence.MONTH, today)),
    "quarter": ("Last quarter", lambda today: last(Cadence.QUARTER, today)),
    "year": ("Last year", lambda today: (date(today.year - 1, 1, 1), date(today.year - 1, 12, 31))),
    "30": ("Last 30 days", lambda today: (today - 29 * DAY, today)),
}
"""The presets by name: a label, and the days of the period as of a day."""
