"""Celery tasks of webhooks."""

import logging
from typing import Any

from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.tasks import task
from compliance.stores import wakeups
from webhooks.sending.sender import Sender

log = logging.getLogger(__name__)

STAND_IN_SIZE = 16
STAND_IN_SECONDS = 2.0  # so that the next sweep finds the worker's thread free


@task("webhooks.sweep")
def sweep(**_: Any) -> None:
    """Send what is due in the current environment while no sender runs."""
    try:
        if wakeups.is_alive(wakeups.WEBHOOKS):
            return
    except RedisError:
        return
    sender = Sender(environments.current(), size=STAND_IN_SIZE)
    made = sender.run_until_idle(seconds=STAND_IN_SECONDS)
    if made:
        log.warning("no sender runs: made %d attempts in its place", made)
