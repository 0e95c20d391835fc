"""The process's Redis client and its key names; callers decide what a `RedisError` means to them."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from time import monotonic
from typing import Any, TypeVar

import redis
from django.conf import settings
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import NoScriptError, RedisError, ResponseError
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
        with self.guarding(gone=gone):
            return action()

    @contextmanager
    def guarding(self, *, gone: tuple[type[Exception], ...] = (Unreachable, Hung)) -> Iterator[None]:
        """`call()` around a block."""
        if monotonic() < self._closed_at:
            raise Unreachable("Redis was unreachable a moment ago")
        try:
            yield
        except gone:
            self._closed_at = monotonic() + REST_SECONDS
            raise


circuit = Circuit()


class Script:
    """A Lua script, called over connections of its own: the client's pool and retries cost several times
    what such a call does. `carries_much`: its arguments are many kilobytes.
    """

    def __init__(self, text: str, *, carries_much: bool = False) -> None:
        self._text = text
        self._carries_much = carries_much
        self._digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    def run(self, *calls: Sequence[Any]) -> list[Any]:
        """Each call's answer, in one round trip; a call is the number of keys, the keys and the arguments.

        Raises `RedisError`.
        """
        answers = _ask([self.by_digest(call) for call in calls], carries_much=self._carries_much)
        for place, answer in enumerate(answers):
            if isinstance(answer, NoScriptError):
                (answers[place],) = _ask([self.by_text(calls[place])], carries_much=self._carries_much)
        for answer in answers:
            if isinstance(answer, RedisError):
                raise answer
        return answers

    def __call__(self, *, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """The answer to one call. Raises `RedisError`."""
        return self.run((len(keys), *keys, *args))[0]

    def by_digest(self, call: Sequence[Any]) -> tuple[Any, ...]:
        """The command for a call of what Redis has seen before."""
        return ("EVALSHA", self._digest, *call)

    def by_text(self, call: Sequence[Any]) -> tuple[Any, ...]:
        """The command for a call of what it has not seen yet."""
        return ("EVAL", self._text, *call)


def values(keys: Sequence[str]) -> list[bytes | None]:
    """What is stored under each key, asked for as a script's calls are. Raises `RedisError`."""
    found: Any = _ask([("MGET", *keys)])[0]
    if isinstance(found, RedisError):
        raise found
    return list(found)


def _ask(commands: Sequence[Sequence[Any]], *, carries_much: bool = False) -> list[Any]:
    idle = _idle(client())
    try:
        connection = idle.pop()
    except IndexError:
        pool = client().connection_pool
        connection = pool.connection_class(**pool.connection_kwargs)
    packed = [_packed(one) for one in commands] if carries_much else None
    try:
        return _exchange(connection, commands, packed)
    except Unreachable:
        # The server may have ended it while it was idle.
        return _exchange(connection, commands, packed)
    finally:
        idle.append(connection)


@lru_cache(maxsize=1)
def _idle(of: redis.Redis) -> deque[Any]:
    """Connections that no thread uses just now."""
    return deque()


def _packed(command: Sequence[Any]) -> bytes:
    """A command in Redis's protocol: a tenth of what hiredis takes for a megabyte, twice that for little."""
    pieces = [b"*%d\r\n" % len(command)]
    for argument in command:
        value = argument if type(argument) is bytes else str(argument).encode()
        pieces += (b"$%d\r\n" % len(value), value, b"\r\n")
    return b"".join(pieces)


def _exchange(
    connection: Any, commands: Sequence[Sequence[Any]], packed: Sequence[bytes] | None
) -> list[Any]:
    """Send all, read all; an error of the server's is an answer. What breaks it off closes the connection."""
    answers = []
    try:
        connection.send_packed_command(packed or connection.pack_commands(commands))
        for _ in commands:
            try:
                answers.append(connection.read_response())
            except ResponseError as error:
                answers.append(error)
    except BaseException:
        connection.disconnect()
        raise
    return answers


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
