"""Tell processes and tasks through Redis that there is work, and show that processes run.

A message that is lost delays the work until the next poll or sweep.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.tasks import enqueue
from compliance.stores import redis

log = logging.getLogger(__name__)

RECONNECT_SECONDS: Final = 1.0
LISTEN_SECONDS: Final = 5.0
ALIVE_SECONDS: Final = 10
LOST_AFTER_SECONDS: Final = 2
QUIET_SECONDS: Final = 0.1
"""A process asks for a task at most once in this time; a task waits as long before its last look for work."""
_asked_at: dict[tuple[Environment, str], float] = {}

Channel = tuple[str, ...]
"""The parts of a key in the environment's namespace."""
WEBHOOKS: Final = ("webhooks", "due")
SIGNALS: Final = ("signals", "due")
SEALED: Final = ("auditlog", "sealed")


def wake(channel: Channel) -> None:
    """Wake the current environment's listeners, unless Redis is down."""
    tell(lambda: redis.client().publish(redis.key(*channel), b"1"))


def listen(
    channels: Sequence[Channel], environment: Environment, wake: Callable[[], None], stopping: threading.Event
) -> None:
    """Call `wake` at each message in `environment`, until `stopping` is set."""
    with environments.use(environment):
        while not stopping.is_set():
            try:
                with redis.client().pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]
                    subscription.subscribe(*(redis.key(*channel) for channel in channels))
                    # For messages sent before the subscription.
                    wake()
                    while not stopping.is_set():
                        if subscription.get_message(timeout=LISTEN_SECONDS) is not None:
                            wake()
            except (RedisError, OSError) as error:
                log.warning("no messages, polling only: %s", type(error).__name__)
                stopping.wait(RECONNECT_SECONDS)


def mark_alive(channel: Channel) -> None:
    """Show for `ALIVE_SECONDS` that a process of the current environment listens to the channel."""
    tell(lambda: redis.client().set(redis.key(*channel, "alive"), b"1", ex=ALIVE_SECONDS))


def is_alive(channel: Channel) -> bool:
    """Return whether such a process of the current environment runs; raises `RedisError`."""
    return bool(redis.client().exists(redis.key(*channel, "alive")))


def ask_for(task: str) -> None:
    """Send a task's message, unless one is under way: sent in the last `LOST_AFTER_SECONDS`, not answered."""
    caller, moment = (environments.current(), task), time.monotonic()
    if moment < _asked_at.get(caller, 0.0) + QUIET_SECONDS:
        return
    _asked_at[caller] = moment
    is_first = tell(
        lambda: redis.client().set(redis.key("asked", task), b"1", nx=True, ex=LOST_AFTER_SECONDS)
    )
    if is_first:
        enqueue(task)


def answer(task: str) -> None:
    """Let a task be asked for again; called by it `QUIET_SECONDS` before its last look for work."""
    tell(lambda: redis.client().delete(redis.key("asked", task)))


def tell(command: Callable[[], object]) -> object:
    """Return what a command of Redis answers, None without Redis: its loss costs time only."""
    try:
        with redis.circuit.guarding(gone=(RedisError, OSError)):
            return command()
    except (RedisError, OSError) as error:
        log.debug("Redis was not told: %s", type(error).__name__)
        return None
