"""The process's Redis client and its key names; callers decide what a `RedisError` means to them.

REDIS_URL names one server or a cluster. In a cluster a command's keys must be in one slot: keys that are used
together have one hash tag, and `together()` takes commands of any slots.
"""

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, TypeVar

import redis
from django.conf import settings
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.cluster import RedisCluster as AsyncRedisCluster
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import NoScriptError, RedisClusterException, RedisError, ResponseError
from redis.retry import Retry

from compliance.core import environments
from compliance.core.circuit_breaker import CircuitBreaker
from compliance.observing import metrics
from compliance.stores import redis_cluster
from compliance.stores.redis_cluster import Cluster, Command, in_one_family

AnyRetry = TypeVar("AnyRetry", Retry, AsyncRetry)

LOST: Final = redis_cluster.GONE
"""Answers after which a client of the event loop connects anew: other nodes may be the primaries now."""


def make_circuit() -> CircuitBreaker:
    """A circuit breaker that refuses with redis's `ConnectionError`; one call a second tries again."""
    return CircuitBreaker(lambda seconds: Unreachable("Redis was unreachable a moment ago"), failures=LOST)


circuit = make_circuit()
broker_circuit = circuit if settings.CELERY_BROKER_URL == settings.REDIS_URL else make_circuit()


class Script:
    """A Lua script, called by its digest and sent in full to a server that does not know it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    @metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "script")
    def run(self, *calls: Sequence[Any]) -> list[Any]:
        """Run the script once for each call, in one round trip, and return the answers in order.

        A call is the number of keys, then the keys (of one slot), then the arguments. Raises: RedisError.
        """
        answers = together(self.by_digest(calls))
        if unknown := unknown_to_server(answers):
            texts = together(self.by_text([calls[index] for index in unknown]))
            answers = replaced(answers, unknown, texts)
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


class AsyncClient:
    """Sends commands from an event loop, over connections of that loop; close it in the same loop.

    One caller at a time: a caller awaits its answers before the next asks.
    """

    def __init__(self) -> None:
        self._connection: AbstractConnection | None = None
        self._cluster: AsyncRedisCluster | None = None

    async def together(self, commands: Sequence[Command]) -> list[Any]:
        """As the function `together()`, over one connection (to each node of a cluster)."""
        if redis_cluster.is_cluster(settings.REDIS_URL):
            return await self._of_cluster(commands)
        if self._connection is None:
            self._connection = _async_client().connection_pool.make_connection()  # type: ignore[no-untyped-call]
        return await _exchanged(self._connection, commands)

    async def close(self) -> None:
        """Close the connections."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            await connection.disconnect()
        if self._cluster is not None:
            cluster, self._cluster = self._cluster, None
            await cluster.aclose()

    async def _of_cluster(self, commands: Sequence[Command]) -> list[Any]:
        if self._cluster is None:
            self._cluster = redis_cluster.make_async_client(settings.REDIS_URL, _timeouts())
        cluster = self._cluster
        with in_one_family():
            async with cluster.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                answers: list[Any] = await pipeline.execute(raise_on_error=False)
        if any(isinstance(answer, LOST) for answer in answers) and self._cluster is cluster:
            await self.close()
        return answers


class AsyncScript:
    """Runs a script from the event loop of its client, which it leaves open."""

    def __init__(self, script: Script, client: AsyncClient) -> None:
        self._script = script
        self._client = client

    async def run(self, *calls: Sequence[Any]) -> list[Any]:
        """As `Script.run()`."""
        answers = await self._client.together(self._script.by_digest(calls))
        if unknown := unknown_to_server(answers):
            texts = await self._client.together(self._script.by_text([calls[index] for index in unknown]))
            answers = replaced(answers, unknown, texts)
        return checked(answers)


def together(commands: Sequence[Command]) -> list[Any]:
    """Run commands, each of keys in one slot, in one round trip (to each node of a cluster).

    Returns the answers in order, errors among them. Raises: RedisError if the server is away.
    """
    server = client()
    if isinstance(server, Cluster):
        return server.together(commands)
    with server.pipeline(transaction=False) as pipeline:
        for command in commands:
            pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
        return pipeline.execute(raise_on_error=False)


def by_slot(keys: Sequence[str]) -> list[list[int]]:
    """The positions of the keys that one command may have together: in a cluster, those of one slot."""
    if not isinstance(client(), Cluster):
        return [list(range(len(keys)))] if keys else []
    groups: dict[int, list[int]] = {}
    for position, name in enumerate(keys):
        groups.setdefault(redis_cluster.slot_of(name), []).append(position)
    return list(groups.values())


def values_of(keys: Sequence[str]) -> list[bytes | None]:
    """The values of the keys, in order. Raises: RedisError."""
    groups = by_slot(keys)
    commands = [("MGET", *(keys[position] for position in group)) for group in groups]
    found: list[bytes | None] = [None] * len(keys)
    for group, values in zip(groups, checked(together(commands)) if commands else (), strict=True):
        for position, value in zip(group, values, strict=True):
            found[position] = value
    return found


def ping() -> None:
    """Raise RedisError unless the server, or some node of the cluster, answers."""
    server = client()
    if isinstance(server, Cluster):
        server.ping(target_nodes=Cluster.RANDOM)
    else:
        server.ping()


def unknown_to_server(answers: Sequence[Any]) -> list[int]:
    """The positions of the commands that a server refused because it does not know the script."""
    return [position for position, answer in enumerate(answers) if isinstance(answer, NoScriptError)]


def replaced(answers: Sequence[Any], positions: Iterable[int], others: Iterable[Any]) -> list[Any]:
    """The answers, with others at these positions."""
    changed = list(answers)
    for position, other in zip(positions, others, strict=True):
        changed[position] = other
    return changed


def checked(answers: list[Any]) -> list[Any]:
    """The answers; raises the first error among them."""
    for answer in answers:
        if isinstance(answer, RedisError | RedisClusterException):
            with in_one_family():
                raise answer
    return answers


@cache
def client() -> redis.Redis | Cluster:
    """The client of this process, shared by its threads; an answer takes REDIS_TIMEOUT_SECONDS at most.

    Raises: RedisError if no node of a cluster answers.
    """
    if redis_cluster.is_cluster(settings.REDIS_URL):
        return redis_cluster.make_client(settings.REDIS_URL, _timeouts())
    return redis.Redis.from_url(settings.REDIS_URL, **_timeouts(), retry=_again(Retry))


@cache
def broker() -> redis.Redis:
    """The client of the server that holds the messages of tasks, which is no cluster."""
    return redis.Redis.from_url(settings.CELERY_BROKER_URL, **_timeouts(), retry=_again(Retry))


def described() -> list[dict[str, Any]]:
    """What INFO says of the server, or of each node of the cluster. Raises: RedisError."""
    server = client()
    if isinstance(server, Cluster):
        return list(server.info(target_nodes=Cluster.ALL_NODES).values())
    return [server.info()]


def look_again() -> None:
    """Have the client of a cluster ask which node serves what; needed where no command would find out."""
    server = client()
    if isinstance(server, Cluster):
        server.look_again()


def _async_client() -> AsyncRedis:
    return AsyncRedis.from_url(settings.REDIS_URL, **_timeouts(), retry=_again(AsyncRetry))


def _again(kind: type[AnyRetry]) -> AnyRetry:
    """One retry, for a connection that the server had closed; a server that hangs is not waited for twice."""
    return kind(NoBackoff(), 1, supported_errors=(Unreachable,))


async def _exchanged(connection: AbstractConnection, commands: Sequence[Command]) -> list[Any]:
    """The server's answers, errors among them.

    It does without redis-py's pool and pipeline, which cost more processor time.
    """

    async def exchange() -> list[Any]:
        await connection.send_packed_command(connection.pack_commands(commands))
        return [await _answer(connection) for _ in commands]

    async def disconnect(error: Exception) -> None:
        await connection.disconnect()

    try:
        answers: list[Any] = await connection.retry.call_with_retry(exchange, disconnect)
        return answers
    except BaseException:
        # An answer that was left unread would be taken for one to the next caller.
        await connection.disconnect(nowait=True)
        raise


async def _answer(connection: AbstractConnection) -> Any:
    try:
        return await connection.read_response()
    except ResponseError as error:
        return error


def _timeouts() -> dict[str, Any]:
    return {
        "socket_timeout": settings.REDIS_TIMEOUT_SECONDS,
        "socket_connect_timeout": settings.REDIS_TIMEOUT_SECONDS,
    }


def key(*parts: object) -> str:
    """A key in the namespace of the current environment: `service:live:part:part`."""
    return ":".join([settings.SERVICE_NAME, environments.current().value, *map(str, parts)])
