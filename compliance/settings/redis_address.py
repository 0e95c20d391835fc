"""The addresses of Redis that the service's clients accept."""

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

import redis
from kombu import Connection
from redis.connection import parse_url
from redis.exceptions import RedisError

from compliance.stores import redis_cluster

ONE_SERVER: Final = ("redis", "rediss")
"""Schemes of a server over TCP, the only ones that Celery shares with redis-py."""


def checked(url: str) -> str:
    """Return the address of one server, a socket or a cluster.

    Raises: ValueError, which does not show the address.
    """
    try:
        is_usable = _is_usable(url)
    except (ValueError, TypeError, RedisError):
        is_usable = False
    if not is_usable:
        raise ValueError("is no address of Redis (redis, rediss, redis+cluster, rediss+cluster or unix://…)")
    return url


def checked_broker(url: str) -> str:
    """Return the address of one server that Celery can use. Raises: ValueError, as `checked()`."""
    if not is_for_broker(url):
        raise ValueError("is no address of one Redis server that Celery can use (redis:// or rediss://…)")
    return url


def is_for_broker(url: str) -> bool:
    """Whether redis-py and Celery both accept the address."""
    try:
        if not _is_usable(url) or urlsplit(url).scheme not in ONE_SERVER:
            return False
        Connection(url)  # Celery refuses some options of redis-py.
    except (ValueError, TypeError, KeyError, RedisError):
        return False
    return True


def _is_usable(url: str) -> bool:
    parts = urlsplit(url)
    # `urlsplit` drops line ends and lowers the scheme; redis-py takes it letter by letter.
    if not url.startswith(f"{parts.scheme}://") or not url.isprintable() or " " in url:
        return False
    if parts.scheme in redis_cluster.SCHEMES:
        node = redis_cluster.parse(url).url
        parse_url(node)  # type: ignore[no-untyped-call]
        return bool(urlsplit(node).hostname)
    if parts.scheme not in (*ONE_SERVER, "unix"):
        return False
    redis.Redis.from_url(url).connection_pool.make_connection()  # refuses unknown options, asks nobody
    return bool(parts.path) if parts.scheme == "unix" else _is_server(parts)


def _is_server(parts: SplitResult) -> bool:
    # redis-py takes a database that is no number for the first one.
    return bool(parts.hostname) and re.fullmatch(r"(/\d*)?", parts.path, re.ASCII) is not None
