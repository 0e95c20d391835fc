"""The process's Redis client and its key names; callers decide what a `RedisError` means to them."""

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import redis
from django.conf import settings
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import NoScriptError, RedisError
from redis.exceptions import TimeoutError as Hung
from redis.retry import Retry

from compliance.core import environments
from compliance.core.circuit_breaker import CircuitBreaker


def make_circuit() -> CircuitBreaker:
    """A circuit breaker that refuses with redis's `ConnectionError`; one call a second tries again."""
    return CircuitBreaker(
        lambda seconds: Unreachable("Redis was unreachable a moment ago"), failures=(Unreachable, Hung)
    )


circuit = make_circuit()


class Script:
    """A Lua script, called by its digest and sent in full to a server that does not know it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def run(self, *calls: Sequence[Any]) -> list[Any]:
        """Run the script once for each call, in one round trip, and return the answers in order.

        A call is the number of keys, then the keys, then the arguments. Raises: RedisError.
        """
        answers = _executed(client().pipeline(transaction=False), self.by_digest(calls))
        if unknown_to_server(answers):
            answers = _executed(client().pipeline(transaction=False), self.by_text(calls))
        return checked(answers)

    def __call__(self, *, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run the script once and return its answer. Raises: RedisError."""
        return self.run((len(keys), *keys, *args))[0]

    def by_digest(self, calls: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Commands for a server that knows the script."""
        return [("EVALSHA", self._digest, *call) for call in calls]

    def by_text(self, calls: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """Commands for a server that does not know it yet."""
        return [("EVAL", self._text, *call) for call in calls]


class AsyncScript:
    """A script called from an event loop, over connections of that loop; close it in the same loop."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._client: AsyncRedis | None = None

    async def run(self, *calls: Sequence[Any]) -> list[Any]:
        """As `Script.run()`."""
        if self._client is None:
            self._client = AsyncRedis.from_url(settings.REDIS_URL, **_options(AsyncRetry(NoBackoff(), 1)))
        answers = await self._executed(self._client, self._script.by_digest(calls))
        if unknown_to_server(answers):
            answers = await self._executed(self._client, self._script.by_text(calls))
        return checked(answers)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    @staticmethod
    async def _executed(server: AsyncRedis, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        async with server.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            return await pipeline.execute(raise_on_error=False)


def _executed(pipeline: Pipeline, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    with pipeline:
        for command in commands:
            pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
        return pipeline.execute(raise_on_error=False)


def unknown_to_server(answers: Sequence[Any]) -> bool:
    """Whether the server refused the commands because it does not know the script; none of them ran."""
    return isinstance(answers[0], NoScriptError)


def checked(answers: list[Any]) -> list[Any]:
    """The answers; raises the first error among them."""
    for answer in answers:
        if isinstance(answer, RedisError):
            raise answer
    return answers


@cache
def client() -> redis.Redis:
    """The client of this process, shared by its threads; an answer takes REDIS_TIMEOUT_SECONDS at most."""
    return redis.Redis.from_url(settings.REDIS_URL, **_options(Retry(NoBackoff(), 1)))


def _options(retry: Retry | AsyncRetry) -> dict[str, Any]:
    """What sync and async clients have in common: one retry, for a connection that the server had closed."""
    return {
        "socket_timeout": settings.REDIS_TIMEOUT_SECONDS,
        "socket_connect_timeout": settings.REDIS_TIMEOUT_SECONDS,
        "retry": retry,
    }


def key(*parts: object) -> str:
    """A key in the namespace of the current environment: `service:live:part:part`."""
    return ":".join([settings.SERVICE_NAME, environments.current().value, *map(str, parts)])
