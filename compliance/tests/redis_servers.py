"""Another Redis behind REDIS_URL, or none, for as long as a test needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from pytest_django.fixtures import Settings

from compliance.stores import redis
from events.risk import state_cache

NOWHERE: Final = "redis://127.0.0.1:1/0"
"""An address at which no server answers."""


@contextmanager
def redis_at(url: str, settings: Settings) -> Iterator[None]:
    """Use the Redis at `url`, with new circuits; every client is closed that is not used on.

    Garbage collection would find the sockets of one that is left open, which is a warning.
    """
    # Until the end of the block: the listener of an earlier test may still read from it.
    former, usual = redis.client(), settings.REDIS_URL
    redis.client.cache_clear()
    settings.REDIS_URL = url
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis, "circuit", redis.make_circuit())
        patch.setattr(state_cache, "_circuit", redis.make_circuit())
        try:
            yield
        finally:
            settings.REDIS_URL = usual
            forget_client()
            former.close()


def forget_client() -> None:
    """Close the client of the process, if there is one: the next call makes another."""
    if redis.client.cache_info().currsize:
        redis.client().close()
    redis.client.cache_clear()
