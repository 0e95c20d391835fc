"""Numbers with their nouns, and durations, as people write them."""

from datetime import timedelta
from typing import Final

_UNITS: Final = ((86_400, "d", "day"), (3_600, "h", "hour"), (60, "min", "minute"), (1, "s", "second"))


def counted(number: int, one: str, many: str = "") -> str:
    """Return `number` with its noun: `1 entry`, `2,000 entries`; `many` is `one` with an s by default."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def spoken(span: timedelta) -> str:
    """Return a readable span: `0.4 seconds`, `12 seconds`, `3 minutes`, `5 hours`, `40 days`."""
    if span < timedelta(seconds=10):
        return f"{span.total_seconds():.1f} seconds"
    size, _, unit = _unit_of(span)
    return counted(int(span.total_seconds() // size), unit)


def measured(span: timedelta) -> str:
    """Return a span for an axis or a cell, with one decimal: `0.4 s`, `3.5 min`, `5.0 h`, `40.2 d`."""
    size, unit, _ = _unit_of(span)
    return f"{span.total_seconds() / size:.1f} {unit}"


def to_the_minute(span: timedelta) -> str:
    """Return a span in two units, without its sign: `3 d 4 h`, `2 h 5 min`."""
    minutes = int(abs(span).total_seconds() // 60)
    days, hours = divmod(minutes // 60, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min"


def _unit_of(span: timedelta) -> tuple[int, str, str]:
    """Return the largest unit that the span has at least twice: its seconds, short name and name."""
    return next((unit for unit in _UNITS if span.total_seconds() >= 2 * unit[0]), _UNITS[-1])
