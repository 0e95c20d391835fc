"""The process's Redis client and its key names; callers decide what a `RedisError` means to them."""

from collections.abc import Callable
from functools import cache
from time import monotonic
from typing import TypeVar

import redis
from django.conf import settings
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import TimeoutError as Hung

from compliance import environments

Answer = TypeVar("Answer")

REST_SECONDS = 1.0


class Circuit:
    """Spares callers the wait for a server found dead: one try a second, the rest fail at once."""

    def __init__(self) -> None:
        self._closed_at = 0.0

    def call(
        self, action: Callable[[], Answer], *, gone: tuple[type[Exception], ...] = (Unreachable, Hung)
    ) -> Answer:
        """What `action` returns; raises what it raises, or redis's `ConnectionError` while resting."""
        if monotonic() < self._closed_at:
            raise Unreachable("Redis was unreachable a moment ago")
        try:
            return action()
        except gone:
            self._closed_at = monotonic() + REST_SECONDS
            raise


circuit = Circuit()


@cache
def client() -> redis.Redis:
    """A client whose pool is shared by the process's threads; answers within REDIS_TIMEOUT_SECONDS."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=settings.REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=settings.REDIS_TIMEOUT_SECONDS,
        health_check_interval=30,
    )


def key(*parts: object) -> str:
    """A key in the current environment's namespace: `service:live:part:part`."""
    return ":".join([settings.SERVICE_NAME, environments.current().value, *map(str, parts)])
