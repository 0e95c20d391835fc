"""What beat starts: the watch over the senders."""

import logging
import time
from typing import Any

from redis.exceptions import RedisError

from compliance.tasks import task
from webhooks import doorbell, engine

log = logging.getLogger(__name__)

# How long a worker's thread goes on sending, so that the next watch finds it free.
TURN_SECONDS = 2.0


@task("webhooks.sweep")
def sweep(**_: Any) -> None:
    """Send what is due while no sender is at work."""
    try:
        if doorbell.is_sender_alive():
            return
    except RedisError:
        return
    until, count = time.monotonic() + TURN_SECONDS, 0
    while (made := engine.stand_in()) and time.monotonic() < until:
        count += made
    if count or made:
        log.warning("no sender is at work: made %d attempts in its place", count + made)
