"""Asking PostgreSQL and Redis, alike for code that runs in the event loop and in a thread."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from redis.exceptions import RedisError

from compliance.core.environments import Environment
from compliance.observing import metrics
from compliance.stores import redis, sql
from compliance.stores.async_postgres import AsyncReader, Query, Rows
from compliance.stores.redis import AsyncClient, Command

Outcome = TypeVar("Outcome")
_timed = partial(metrics.timed, metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "proofs")
Answers = list[Any] | RedisError
"""The answers to commands, in order, or the error for which there are none."""


class Answered(NamedTuple):
    """The rows of each statement, and the answers to the commands."""

    rows: Sequence[Rows]
    answers: Answers


class ThreadAsker:
    """Asks over Django's connections and those of the thread; what awaits it never waits (`run`)."""

    async def ask(self, queries: Sequence[Query] = (), commands: Sequence[Command] = ()) -> Answered:
        """Ask statements, which only read and may be asked twice, and send commands in one round trip.

        Raises: Django's errors of the database; what Redis met is in the answers.
        """
        rows = sql.read_again(lambda: [sql.asked(*query) for query in queries]) if queries else []
        return Answered(rows, answers_to(commands))


class LoopAsker:
    """Asks over connections of the event loop, for one caller at a time, PostgreSQL and Redis at once."""

    def __init__(self, environment: Environment) -> None:
        self._reader = AsyncReader(environment)
        self._client = AsyncClient()
        self._has_sent = False

    async def run(self, work: Callable[["Asker"], Awaitable[Outcome]]) -> Outcome:
        """Return the outcome of the work. Raises: what the work raises.

        SynchronousOnlyOperation, of work that used the ORM, becomes a RuntimeError if commands were sent by
        then: nobody may do the work again.
        """
        self._has_sent = False
        try:
            return await work(self)
        except SynchronousOnlyOperation as error:
            if self._has_sent:
                raise RuntimeError("the ORM was used after commands were sent") from error
            raise

    async def ask(self, queries: Sequence[Query] = (), commands: Sequence[Command] = ()) -> Answered:
        """As `ThreadAsker.ask()`."""
        answering = None
        if commands:
            self._has_sent = True
            answering = asyncio.get_running_loop().create_task(self._answers_to(commands))
        try:
            rows = [await self._reader.rows(query) for query in queries]
        finally:
            if answering is not None:
                await asyncio.wait([answering])
        return Answered(rows, [] if answering is None else answering.result())

    async def close(self) -> None:
        """Close the connections."""
        await self._reader.close()
        await self._client.close()

    async def _answers_to(self, commands: Sequence[Command]) -> Answers:
        try:
            with redis.circuit.guarding(), _timed():
                return redis.checked(await self._client.together(commands))
        except RedisError as error:
            return error


Asker = ThreadAsker | LoopAsker
"""The current environment's database, and Redis."""


def run(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Run work that awaits nothing but a `ThreadAsker`, in this thread and without an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    work.close()
    raise RuntimeError("the work waits for an event loop")


def answers_to(commands: Sequence[Command]) -> Answers:
    """The answers to the commands, asked in one round trip."""
    if not commands:
        return []
    try:
        with redis.circuit.guarding(), _timed():
            return redis.checked(redis.together(commands))
    except RedisError as error:
        return error
