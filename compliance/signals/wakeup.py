"""Wake signal senders as soon as an entry is sealed or a stream changes, and show that one runs."""

import threading
from collections.abc import Callable
from typing import Final

from auditlog.services import SEALED
from compliance.core.environments import Environment
from compliance.stores import announcements

CHANNEL: Final = ("signals", "due")
ALIVE: Final = ("signals", "sender")


def notify_on_commit() -> None:
    """Wake the current environment's senders once its transaction has committed."""
    announcements.announce_on_commit(CHANNEL)


def listen(environment: Environment, wake: Callable[[], None], stopping: threading.Event) -> None:
    """Call `wake` when entries were sealed or streams changed, until `stopping` is set."""
    announcements.listen((CHANNEL, SEALED), environment, wake, stopping)


def mark_sender_alive() -> None:
    """Show for some seconds that a sender of the current environment runs."""
    announcements.mark_alive(ALIVE)


def is_sender_alive() -> bool:
    """Whether a sender of the current environment runs; raises `RedisError`."""
    return announcements.is_alive(ALIVE)
