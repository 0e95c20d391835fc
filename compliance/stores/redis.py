"""The process's Redis client and its key names; callers decide what a `RedisError` means to them."""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import redis
from django.conf import settings
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import (
    ConnectionError as Unreachable,
    NoScriptError,
    RedisError,
    ResponseError,
    TimeoutError as Hung,
)
from redis.retry import Retry

from compliance.core import environments
from compliance.core.circuit_breaker import CircuitBreaker
from compliance.observing import metrics

Command = tuple[Any, ...]
LOST: Final = (Unreachable, Hung)
"""Errors of a server that is away."""


def make_circuit() -> CircuitBreaker:
    """A circuit breaker that refuses with redis's `ConnectionError`; one call a second tries again."""
    return CircuitBreaker(lambda seconds: Unreachable("Redis was unreachable a moment ago"), failures=LOST)


circuit = make_circuit()
broker_circuit = circuit if settings.CELERY_BROKER_URL == settings.REDIS_URL else make_circuit()


class Script:
    """A Lua script, called by its digest and sent in full to a server that does not know it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    @metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "script")
    def run(self, *calls: Sequence[Any]) -> list[Any]:
        """Run the script once for each call, in one round trip, and return the answers in order.

        A call is the number of keys, then the keys, then the arguments. Raises: RedisError.
        """
        answers = together([("EVALSHA", self.digest, *call) for call in calls])
        if unknown := self.of_unknown(calls, answers):
            answers = _filled(answers, together(unknown))
        return checked(answers)

    def __call__(self, *, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run the script once and return its answer. Raises: RedisError."""
        return self.run((len(keys), *keys, *args))[0]

    def of_unknown(self, calls: Sequence[Sequence[Any]], answers: Sequence[Any]) -> list[Command]:
        """The commands, with the whole script, of the calls that a server refused as it does not know it."""
        unknown = [call for call, one in zip(calls, answers, strict=True) if isinstance(one, NoScriptError)]
        return [("EVAL", self._text, *call) for call in unknown]


class AsyncClient:
    """Sends commands from an event loop, over a connection of that loop; close it in the same loop.

    One caller at a time: a caller awaits its answers before the next asks. It does without redis-py's pool
    and pipeline, which cost more processor time.
    """

    def __init__(self) -> None:
        self._connection: AbstractConnection | None = None

    async def together(self, commands: Sequence[Command]) -> list[Any]:
        """As the function `together()`."""
        if self._connection is None:
            client = AsyncRedis.from_url(settings.REDIS_URL, **_options(AsyncRetry))
            self._connection = client.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        connection = self._connection

        async def exchange() -> list[Any]:
            await connection.send_packed_command(connection.pack_commands(commands))
            answers: list[Any] = []
            for _ in commands:
                try:
                    answers.append(await connection.read_response())
                except ResponseError as error:
                    answers.append(error)
            return answers

        async def disconnect(error: Exception) -> None:
            await connection.disconnect()

        try:
            return await connection.retry.call_with_retry(exchange, disconnect)
        except BaseException:
            # An answer that was left unread would be taken for one to the next caller.
            await connection.disconnect(nowait=True)
            raise

    async def run(self, script: Script, *calls: Sequence[Any]) -> list[Any]:
        """As `Script.run()`."""
        answers = await self.together([("EVALSHA", script.digest, *call) for call in calls])
        if unknown := script.of_unknown(calls, answers):
            answers = _filled(answers, await self.together(unknown))
        return checked(answers)

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect()


def together(commands: Sequence[Command]) -> list[Any]:
    """Run commands in one round trip.

    Returns the answers in order, errors among them. Raises: RedisError if the server is away.
    """
    with client().pipeline(transaction=False) as pipeline:
        for command in commands:
            pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
        return pipeline.execute(raise_on_error=False)


def _filled(answers: Sequence[Any], others: Iterable[Any]) -> list[Any]:
    """The answers, with others in place of those of a server that does not know the script."""
    rest = iter(others)
    return [next(rest) if isinstance(one, NoScriptError) else one for one in answers]


def checked(answers: list[Any]) -> list[Any]:
    """The answers; raises the first error among them."""
    for answer in answers:
        if isinstance(answer, RedisError):
            raise answer
    return answers


@cache
def client() -> redis.Redis:
    """The client of this process, shared by its threads; an answer takes REDIS_TIMEOUT_SECONDS at most."""
    return redis.Redis.from_url(settings.REDIS_URL, **_options(Retry))


@cache
def broker() -> redis.Redis:
    """The client of the server that holds the messages of tasks."""
    return redis.Redis.from_url(settings.CELERY_BROKER_URL, **_options(Retry))


def _options(retry: type[Retry | AsyncRetry]) -> dict[str, Any]:
    return {
        "socket_timeout": settings.REDIS_TIMEOUT_SECONDS,
        "socket_connect_timeout": settings.REDIS_TIMEOUT_SECONDS,
        # Once, for a connection that the server had closed; a server that hangs is not waited for twice.
        "retry": retry(NoBackoff(), 1, supported_errors=(Unreachable,)),
    }


def key(*parts: object) -> str:
    """A key in the namespace of the current environment: `service:live:part:part`."""
    return ":".join([settings.SERVICE_NAME, environments.current().value, *map(str, parts)])
