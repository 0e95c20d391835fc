"""Wake a task that empties a queue: one message for all the work that arrives until the task has looked.

A lost message delays the work until the next sweep.
"""

import logging
import time
from typing import Final

from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.tasks import enqueue
from compliance.stores import redis

log = logging.getLogger(__name__)

LOST_AFTER_SECONDS: Final = 2
QUIET_SECONDS: Final = 0.1
"""A process rings at most once in this time; a task waits as long before its last look at the queue."""
_rung_at: dict[tuple[Environment, str], float] = {}


def ring_on_commit(task: str) -> None:
    """Send the message of `task` once the current environment's transaction has committed."""
    environments.on_commit(lambda: ring(task))


def ring(task: str) -> None:
    """Send the message, unless one is under way: sent in the last `LOST_AFTER_SECONDS` and not answered."""
    caller, moment = (environments.current(), task), time.monotonic()
    if moment < _rung_at.get(caller, 0.0) + QUIET_SECONDS:
        return
    _rung_at[caller] = moment
    try:
        with redis.circuit.guarding(gone=(RedisError, OSError)):
            is_first = redis.client().set(redis.key("ring", task), b"1", nx=True, ex=LOST_AFTER_SECONDS)
    except (RedisError, OSError) as error:
        log.debug("%s not sent: %s", task, type(error).__name__)
        return
    if is_first:
        enqueue(task)


def answered(task: str) -> None:
    """Let the next ring send a message again; call it `QUIET_SECONDS` before the last look for work."""
    try:
        redis.client().delete(redis.key("ring", task))
    except (RedisError, OSError) as error:
        log.debug("message of %s not taken back: %s", task, type(error).__name__)
