"""Reads of an environment's database from the event loop."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from django.db import connections
from psycopg.types.json import set_json_loads

from compliance.core.environments import Environment
from compliance.core.json_values import from_stored
from compliance.observing import metrics
from compliance.stores.postgresql.bounded import BoundedAsyncConnection, is_of_hung_server

SESSION_ENDED = "57P"  # how the SQLSTATEs begin with which PostgreSQL ends a session

Rows = list[tuple[Any, ...]]


class Query(NamedTuple):
    """A statement with `$1` where its first parameter belongs."""

    text: str
    params: Sequence[Any]


class AsyncReader:
    """One connection for reads; each statement is prepared when it is first asked.

    One caller at a time: a caller awaits its rows before the next asks.
    """

    def __init__(self, environment: Environment) -> None:
        self._name = environment.value
        self._database = connections.create_connection(environment.alias)
        self._connection: psycopg.AsyncConnection[Any] | None = None

    async def rows(self, query: Query) -> Rows:
        """Return the rows, asked over a new connection where the last one has died.

        Raises: Django's errors, OperationalError while PostgreSQL is away or does not answer.
        """
        name = self._name
        timed = metrics.timed(metrics.DATABASE_SECONDS, metrics.DATABASE_ERRORS, name, "loop")
        with self._database.wrap_database_errors, timed:
            connection = self._connection
            if connection is not None and not connection.closed:
                try:
                    return await _rows(connection, query)
                except psycopg.OperationalError as error:
                    has_ended = (error.sqlstate or "").startswith(SESSION_ENDED) or connection.closed
                    if is_of_hung_server(error) or not has_ended:
                        raise
                    await connection.close()
            # With the settings that Django's own have.
            options = {**self._database.get_connection_params(), "cursor_factory": psycopg.AsyncRawCursor}
            self._connection = await BoundedAsyncConnection.connect(**options, autocommit=True)
            set_json_loads(from_stored, self._connection)
            return await _rows(self._connection, query)

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()


async def _rows(connection: "psycopg.AsyncConnection[Any]", query: Query) -> Rows:
    async with psycopg.AsyncRawCursor(connection) as cursor:
        await cursor.execute(query.text, query.params, prepare=True, binary=True)
        return await cursor.fetchall()
