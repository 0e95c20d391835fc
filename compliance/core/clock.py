"""The clock, read only at the edges: views, tasks and commands; services are handed the time."""

from datetime import UTC, datetime


def now() -> datetime:
    """The present moment in UTC."""
    return datetime.now(UTC)
