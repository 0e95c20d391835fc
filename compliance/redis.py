"""The process's Redis client and its key names; callers decide what a `RedisError` means to them."""

from functools import cache

import redis
from django.conf import settings

from compliance import environments


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
