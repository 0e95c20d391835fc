"""A sign of life: beat rings, a worker answers by noting the time; both are needed for it."""

from datetime import UTC, datetime, timedelta
from typing import Final

from compliance import redis

TASK: Final = "compliance.wiring.heartbeat"
PERIOD_SECONDS: Final = 10.0
LATE: Final = timedelta(seconds=60)
KEPT_SECONDS: Final = 3600


def beat(*, now: datetime) -> None:
    """Note that a worker ran."""
    redis.client().set(redis.key("heartbeat"), now.timestamp(), ex=KEPT_SECONDS)


def age(*, now: datetime) -> timedelta | None:
    """How long ago a worker ran last; None when it is longer than an hour."""
    noted = redis.client().get(redis.key("heartbeat"))
    if not isinstance(noted, bytes):
        return None
    return max(now - datetime.fromtimestamp(float(noted), UTC), timedelta(0))
