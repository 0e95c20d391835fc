"""What belongs to no room: the sign of life."""

import logging
from typing import Any

from redis.exceptions import RedisError

from compliance.clock import now
from compliance.tasks import task
from compliance.wiring import heartbeat

log = logging.getLogger(__name__)


@task(heartbeat.TASK)
def note_life(**kwargs: Any) -> None:
    """Let `doctor` see that beat rings and workers answer."""
    try:
        heartbeat.beat(now=now())
    except RedisError as error:
        log.warning("heartbeat not noted: %s", type(error).__name__)
