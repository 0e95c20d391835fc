"""The doorbell: tells the senders at once that something is due. Nothing depends on it but their waiting.

Redis' PUBLISH leaves nothing behind, costs the caller one short round trip, and one who doesn't listen misses
nothing: senders look for themselves several times a second.
"""

import logging
import threading
from collections.abc import Callable, Mapping

from redis.client import PubSub
from redis.exceptions import RedisError

from compliance import environments, redis
from compliance.environments import Environment

log = logging.getLogger(__name__)

ALIVE_SECONDS = 10
REST_SECONDS = 1.0
LISTEN_SECONDS = 1.0


def ring_on_commit() -> None:
    """`ring` once the current environment's transaction has committed."""
    environments.on_commit(ring)


def ring() -> None:
    """Wake the senders of the current environment; without effect while Redis is away."""
    _tell(lambda: redis.client().publish(_bell(), b"1"), "bell not rung")


def show_alive() -> None:
    """Tell, for the next seconds, that a sender is at work in the current environment."""
    _tell(lambda: redis.client().set(_sign_of_life(), b"1", ex=ALIVE_SECONDS), "no sign of life given")


def _tell(action: Callable[[], object], failure: str) -> None:
    try:
        redis.circuit.call(action, gone=(RedisError, OSError))
    except (RedisError, OSError) as error:
        log.debug("%s: %s", failure, type(error).__name__)


def is_sender_alive() -> bool:
    """Whether a sender has shown itself within `ALIVE_SECONDS`; raises `RedisError`."""
    return bool(redis.client().exists(_sign_of_life()))


def listen(bells: Mapping[Environment, Callable[[], None]], stopping: threading.Event) -> None:
    """Call an environment's function whenever it is rung for, until `stopping` is set."""
    by_channel: dict[bytes, Callable[[], None]] = {}
    for environment, wake in bells.items():
        with environments.use(environment):
            by_channel[_bell().encode()] = wake
    while not stopping.is_set():
        try:
            _listen_while_connected(by_channel, stopping)
        except (RedisError, OSError) as error:
            log.warning("no bell, polling alone: %s", type(error).__name__)
            stopping.wait(REST_SECONDS)


def _listen_while_connected(bells: Mapping[bytes, Callable[[], None]], stopping: threading.Event) -> None:
    subscription: PubSub
    with redis.client().pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]
        subscription.subscribe(*bells)
        for wake in bells.values():
            # What was rung for while nobody listened.
            wake()
        while not stopping.is_set():
            message = subscription.get_message(timeout=LISTEN_SECONDS)
            if message is not None:
                bells[message["channel"]]()


def _bell() -> str:
    return redis.key("webhooks", "bell")


def _sign_of_life() -> str:
    return redis.key("webhooks", "sender")
