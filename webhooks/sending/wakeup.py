"""Wake senders through Redis as soon as a delivery is due, and show that a sender runs.

A sender that misses a message finds the delivery at its next poll.
"""

import threading
from collections.abc import Callable

from compliance.core.environments import Environment
from compliance.stores import announcements, redis

CHANNEL, ALIVE = ("webhooks", "due"), ("webhooks", "sender")
ALIVE_SECONDS = 10


def notify_on_commit() -> None:
    """Wake the current environment's senders once its transaction has committed, unless Redis is down."""
    announcements.announce_on_commit(CHANNEL)


def mark_sender_alive() -> None:
    """Show for `ALIVE_SECONDS` that a sender of the current environment runs."""
    announcements.tell(lambda: redis.client().set(redis.key(*ALIVE), b"1", ex=ALIVE_SECONDS))


def is_sender_alive() -> bool:
    """Whether a sender of the current environment runs; raises `RedisError`."""
    return bool(redis.client().exists(redis.key(*ALIVE)))


def listen(environment: Environment, wake: Callable[[], None], stopping: threading.Event) -> None:
    """Call `wake` at each notification for `environment`, until `stopping` is set."""
    announcements.listen((CHANNEL,), environment, wake, stopping)
