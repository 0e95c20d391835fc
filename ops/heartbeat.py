"""The heartbeat: a task that beat schedules and a worker runs, so that its age tells whether both live."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from redis.exceptions import RedisError

from compliance.core.clock import now
from compliance.core.tasks import task
from compliance.stores import redis

log = logging.getLogger(__name__)

TASK: Final = "ops.heartbeat"
PERIOD_SECONDS: Final = 20.0
LATE: Final = timedelta(seconds=60)
KEPT_SECONDS: Final = 3600


@task(TASK)
def note_life(**kwargs: Any) -> None:
    try:
        beat(now=now())
    except RedisError as error:
        log.warning("heartbeat not recorded: %s", type(error).__name__)


def beat(*, now: datetime) -> None:
    redis.client().set(redis.key("heartbeat"), now.timestamp(), ex=KEPT_SECONDS)


def age(*, now: datetime) -> timedelta | None:
    """Return the time since the last heartbeat; None if there was none within `KEPT_SECONDS`."""
    recorded = redis.client().get(redis.key("heartbeat"))
    if not isinstance(recorded, bytes):
        return None
    return max(now - datetime.fromtimestamp(float(recorded), UTC), timedelta(0))
