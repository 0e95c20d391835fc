"""Wake senders through Redis as soon as a delivery is due, and show that a sender runs.

A sender that misses a message finds the delivery at its next poll.
"""

import threading
from collections.abc import Callable

from compliance.core.environments import Environment
from compliance.stores import announcements

CHANNEL, ALIVE = ("webhooks", "due"), ("webhooks", "sender")


def notify_on_commit() -> None:
    """Wake the current environment's senders once its transaction has committed, unless Redis is down."""
    announcements.announce_on_commit(CHANNEL)


def mark_sender_alive() -> None:
    """Show for some seconds that a sender of the current environment runs."""
    announcements.mark_alive(ALIVE)


def is_sender_alive() -> bool:
    """Whether a sender of the current environment runs; raises `RedisError`."""
    return announcements.is_alive(ALIVE)


def listen(environment: Environment, wake: Callable[[], None], stopping: threading.Event) -> None:
    """Call `wake` at each notification for `environment`, until `stopping` is set."""
    announcements.listen((CHANNEL,), environment, wake, stopping)
