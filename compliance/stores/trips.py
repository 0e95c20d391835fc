"""Work in steps: a generator yields what it needs next, and a thread or the event loop fetches it.

Each step is a trip: commands for Redis, and statements for the current environment's database. The event loop
sends the commands while it asks the statements one after the other; a thread sends them after the statements.
"""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from redis.exceptions import RedisError

from compliance.core.environments import Environment
from compliance.observing import metrics
from compliance.stores import redis, sql
from compliance.stores.async_postgres import AsyncReader, Query, Rows
from compliance.stores.redis import AsyncClient
from compliance.stores.redis_cluster import Command

Answers = list[Any] | RedisError
"""The answers to commands, in order, or the error for which there are none."""


class Trip(NamedTuple):
    """The statements and commands of one step. A statement only reads: it may be asked twice."""

    queries: Sequence[Query] = ()
    commands: Sequence[Command] = ()


class TripResult(NamedTuple):
    """The rows of each statement of a trip, and the answers to its commands."""

    rows: Sequence[Rows]
    answers: Answers


Outcome = TypeVar("Outcome")
Steps = Generator[Trip, TripResult, Outcome]
"""Work in steps: it yields trips, is sent their results, and returns its outcome."""


def run(steps: Steps[Outcome]) -> Outcome:
    """Run the steps to their outcome in this thread. Raises: what the steps raise, Django's errors."""
    try:
        trip = next(steps)
        while True:
            trip = steps.send(TripResult(_read(trip.queries), answers_to(trip.commands)))
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
    """Runs steps in the event loop, over connections of that loop, for one caller at a time."""

    def __init__(self, environment: Environment) -> None:
        self._reader = AsyncReader(environment)
        self._client = AsyncClient()

    async def run(self, steps: Steps[Outcome]) -> Outcome:
        """As the function `run()`.

        Raises SynchronousOnlyOperation, too, if a step calls Django's ORM before any commands were sent, and
        RuntimeError if one does so later: nobody may then run the steps again.
        """
        has_sent = False
        try:
            trip = next(steps)
            while True:
                has_sent |= bool(trip.commands)
                trip = steps.send(await self._result_of(trip))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome
        except SynchronousOnlyOperation as error:
            if has_sent:
                raise RuntimeError("a step used the ORM after commands were sent") from error
            raise

    async def close(self) -> None:
        """Close the connections."""
        await self._reader.close()
        await self._client.close()

    async def _result_of(self, trip: Trip) -> TripResult:
        if not trip.commands:
            return TripResult(await self._rows(trip.queries), [])
        answers = asyncio.get_running_loop().create_task(self._answers_to(trip.commands))
        try:
            rows = await self._rows(trip.queries)
        finally:
            await asyncio.wait([answers])
        return TripResult(rows, answers.result())

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


def _timed() -> AbstractContextManager[None]:
    return metrics.timed(metrics.REDIS_SECONDS, metrics.REDIS_ERRORS, "trip")
