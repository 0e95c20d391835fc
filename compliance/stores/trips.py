"""Work that asks in steps: a generator says what it needs next, and a thread or the event loop fetches it.

Each step is one trip: commands of Redis and statements of the current environment's database, asked at once
where the event loop asks.
"""

import asyncio
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeVar

from redis.exceptions import RedisError

from compliance.core.environments import Environment
from compliance.observing import metrics
from compliance.stores import redis, sql
from compliance.stores.async_postgres import AsyncReader, Query, Rows
from compliance.stores.redis import AsyncClient
from compliance.stores.redis_cluster import Command

Answers = list[Any] | RedisError
"""The answers to commands, in order, or why there are none."""


class Trip(NamedTuple):
    """What a step asks; the statements only read."""

    queries: Sequence[Query] = ()
    commands: Sequence[Command] = ()


class Brought(NamedTuple):
    """What a trip brought: the rows of each of its statements, and the answers to its commands."""

    rows: Sequence[Rows]
    answers: Answers


Outcome = TypeVar("Outcome")
Steps = Generator[Trip, Brought, Outcome]
"""Work in steps; what it returns is its outcome."""


def taken(steps: Steps[Outcome]) -> Outcome:
    """The outcome of the steps, fetched by this thread. Raises: what they raise, Django's errors."""
    try:
        trip = next(steps)
        while True:
            trip = steps.send(Brought(_read(trip.queries), answers_to(trip.commands)))
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome


def answers_to(commands: Sequence[Command]) -> Answers:
    """The answers to the commands, asked in one round trip (to each node of a cluster)."""
    if not commands:
        return []
    try:
        with redis.circuit.guarding(), _timed():
            return redis.checked(redis.together(commands))
    except RedisError as error:
        return error


class LoopTrips:
    """Takes steps in the event loop, over connections of that loop; one caller at a time."""

    def __init__(self, environment: Environment) -> None:
        self._reader = AsyncReader(environment)
        self._client = AsyncClient()

    async def taken(self, steps: Steps[Outcome]) -> Outcome:
        """As the function `taken()`."""
        try:
            trip = next(steps)
            while True:
                trip = steps.send(await self._brought(trip))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    async def close(self) -> None:
        """Close the connections."""
        await self._reader.close()
        await self._client.close()

    async def _brought(self, trip: Trip) -> Brought:
        if not trip.commands:
            return Brought(await self._rows(trip.queries), [])
        answers = asyncio.get_running_loop().create_task(self._answers_to(trip.commands))
        try:
            rows = await self._rows(trip.queries)
        finally:
            await asyncio.wait([answers])
        return Brought(rows, answers.result())

    async def _rows(self, queries: Sequence[Query]) -> list[Rows]:
        return [await self._reader.rows(query) for query in queries]

    async def _answers_to(self, commands: Sequence[Command]) -> Answers:
        try:
            with redis.circuit.guarding(), _timed():
                return redis.checked(await self._client.together(commands))
        except RedisError as error:
            return error


def _read(queries: Sequence[Query]) -> list[Rows]:
    return sql.read_again(lambda: [sql.asked(*query) for query in queries]) if queries else []


def _timed() -> Any:
    return metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "trip")
