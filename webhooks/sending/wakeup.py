"""Wake senders through Redis as soon as a delivery is due, and show that a sender runs.

A sender that misses a message finds the delivery at its next poll.
"""

import logging
import threading
from collections.abc import Callable

from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import redis

log = logging.getLogger(__name__)

CHANNEL, ALIVE = ("webhooks", "due"), ("webhooks", "sender")
ALIVE_SECONDS = 10
RECONNECT_SECONDS = 1.0
LISTEN_SECONDS = 1.0


def notify_on_commit() -> None:
    """Wake the current environment's senders once its transaction has committed, unless Redis is down."""
    environments.on_commit(lambda: _tell(lambda: redis.client().publish(redis.key(*CHANNEL), b"1")))


def mark_sender_alive() -> None:
    """Show for `ALIVE_SECONDS` that a sender of the current environment runs."""
    _tell(lambda: redis.client().set(redis.key(*ALIVE), b"1", ex=ALIVE_SECONDS))


def is_sender_alive() -> bool:
    """Whether a sender of the current environment runs; raises `RedisError`."""
    return bool(redis.client().exists(redis.key(*ALIVE)))


def listen(environment: Environment, wake: Callable[[], None], stopping: threading.Event) -> None:
    """Call `wake` at each notification for `environment`, until `stopping` is set."""
    with environments.use(environment):
        while not stopping.is_set():
            try:
                _listen_while_connected(wake, stopping)
            except (RedisError, OSError) as error:
                log.warning("no notifications, polling only: %s", type(error).__name__)
                stopping.wait(RECONNECT_SECONDS)


def _listen_while_connected(wake: Callable[[], None], stopping: threading.Event) -> None:
    with redis.client().pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]
        subscription.subscribe(redis.key(*CHANNEL))
        # For notifications sent before the subscription.
        wake()
        while not stopping.is_set():
            if subscription.get_message(timeout=LISTEN_SECONDS) is not None:
                wake()


def _tell(command: Callable[[], object]) -> None:
    try:
        with redis.circuit.guarding(gone=(RedisError, OSError)):
            command()
    except (RedisError, OSError) as error:
        log.debug("senders not notified: %s", type(error).__name__)
