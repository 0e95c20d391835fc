"""Wake processes through Redis as soon as there is something to do, and show that they run.

Who misses a message finds the work at its next poll.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import redis
from compliance.stores.redis_cluster import in_one_family

log = logging.getLogger(__name__)

RECONNECT_SECONDS: Final = 1.0
LISTEN_SECONDS: Final = 1.0
ALIVE_SECONDS: Final = 10

Channel = tuple[str, ...]
"""The parts of a key in the environment's namespace."""


def announce(channel: Channel) -> None:
    """Wake the current environment's listeners, unless Redis is down."""
    tell(lambda: redis.client().publish(redis.key(*channel), b"1"))


def announce_on_commit(channel: Channel) -> None:
    """Wake the current environment's listeners once its transaction has committed."""
    environments.on_commit(lambda: announce(channel))


def listen(
    channels: Sequence[Channel], environment: Environment, wake: Callable[[], None], stopping: threading.Event
) -> None:
    """Call `wake` at each announcement in `environment`, until `stopping` is set."""
    with environments.use(environment):
        while not stopping.is_set():
            try:
                _listen_while_connected(channels, wake, stopping)
            except (RedisError, OSError) as error:
                log.warning("no announcements, polling only: %s", type(error).__name__)
                stopping.wait(RECONNECT_SECONDS)
                tell(redis.look_again)


def mark_alive(process: Channel) -> None:
    """Show for `ALIVE_SECONDS` that a process of the current environment runs."""
    tell(lambda: redis.client().set(redis.key(*process), b"1", ex=ALIVE_SECONDS))


def is_alive(process: Channel) -> bool:
    """Whether such a process of the current environment runs; raises `RedisError`."""
    return bool(redis.client().exists(redis.key(*process)))


def tell(command: Callable[[], object]) -> None:
    """Run a command of Redis whose loss costs time only."""
    try:
        with redis.circuit.guarding(gone=(RedisError, OSError)):
            command()
    except (RedisError, OSError) as error:
        log.debug("not announced: %s", type(error).__name__)


def _listen_while_connected(
    channels: Sequence[Channel], wake: Callable[[], None], stopping: threading.Event
) -> None:
    with (
        in_one_family(),
        redis.client().pubsub(ignore_subscribe_messages=True) as subscription,  # type: ignore[no-untyped-call]
    ):
        subscription.subscribe(*(redis.key(*channel) for channel in channels))
        # For announcements made before the subscription.
        wake()
        while not stopping.is_set():
            if subscription.get_message(timeout=LISTEN_SECONDS) is not None:
                wake()
