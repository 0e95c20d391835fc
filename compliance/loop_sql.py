"""A statement asked from the event loop: no thread is woken for it, and nobody waits for the interpreter.

Django opens the connection, with its settings; libpq is then asked through psycopg without waiting.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import orjson
import psycopg
from django.db import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    connections,
)
from psycopg import errors, pq
from psycopg.adapt import Transformer
from psycopg.pq.abc import PGconn, PGresult
from psycopg.types.json import set_json_loads

from compliance.environments import Environment

NAME = b"asked"
KINDS = (
    DataError, OperationalError, IntegrityError, InternalError, ProgrammingError, NotSupportedError,
    InterfaceError,
)  # fmt: skip
SESSION_ENDS = "57P"
"""Errors with which the server ends a session: it was told to, or shuts down."""
BINARY = pq.Format.BINARY

Rows = list[tuple[Any, ...]]


class LoopQuery:
    """A read over a connection of its own to an environment's database, prepared there.

    Parameters stand as `$1` in the statement. Its caller waits for the rows before it asks again.
    """

    def __init__(self, environment: Environment, statement: str) -> None:
        self._environment = environment
        self._statement = statement.encode()
        self._link: _Link | None = None

    async def rows(self, *params: bytes) -> Rows:
        """The rows; where the connection had died meanwhile, those that a new one finds.

        Raises Django's errors: `OperationalError` when PostgreSQL is away.
        """
        link = self._link
        if link is not None and link.is_open:
            try:
                return await link.ask(params)
            except (OperationalError, InterfaceError):
                if link.is_open:
                    raise
        loop = asyncio.get_running_loop()
        database = await loop.run_in_executor(None, _connected, self._environment, self._statement)
        self._link = _Link(database, loop)
        return await self._link.ask(params)

    def close(self) -> None:
        """Let the connection go; whoever waits for rows meets an error."""
        if self._link is not None:
            self._link.end(psycopg.InterfaceError("closed"))


def _connected(environment: Environment, statement: bytes) -> Any:
    """Django's connection, with the statement prepared."""
    database = connections.create_connection(environment.alias)
    database.ensure_connection()
    with database.wrap_database_errors:
        prepared = database.connection.pgconn.prepare(NAME, statement)
        if prepared.status != pq.ExecStatus.COMMAND_OK:
            database.close()
            raise errors.error_from_result(prepared)
    return database


class _Link:
    """One connection with at most one question on it; what breaks that off ends the connection."""

    def __init__(self, database: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.is_open = True
        self._connection, self._loop = database.connection, loop
        self._server: PGconn = self._connection.pgconn
        self._server.nonblocking = 1
        # JSON of ours, read by what writes it.
        set_json_loads(orjson.loads, self._connection)
        self._reader = Transformer(self._connection)
        self._results: list[PGresult] = []
        self._future: asyncio.Future[Rows] | None = None
        # A number of our own: libpq closes its one as soon as the connection is lost.
        self._socket = os.dup(self._server.socket)
        loop.add_reader(self._socket, self._read)

    def ask(self, params: Sequence[bytes]) -> asyncio.Future[Rows]:
        """Send the question."""
        self._future = future = self._loop.create_future()
        self._results = []
        try:
            self._server.send_query_prepared(NAME, params, result_format=BINARY)
            self._send()
        except psycopg.Error as error:
            self.end(error)
        return future

    def end(self, error: psycopg.Error) -> None:
        """Close the connection; who waits for rows gets the error."""
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            os.close(self._socket)
            # Django's own way to close it refuses event loops, for it might wait; this doesn't.
            self._connection.close()
        self._fail(error)

    def _send(self) -> None:
        """Send what the kernel takes now, the rest when it takes more."""
        if self._server.flush():
            self._loop.add_writer(self._socket, self._go_on)
        else:
            self._loop.remove_writer(self._socket)

    def _go_on(self) -> None:
        try:
            self._send()
        except psycopg.Error as error:
            self.end(error)

    def _read(self) -> None:
        try:
            self._server.consume_input()
            while not self._server.is_busy():
                result = self._server.get_result()
                if result is None:
                    break
                self._results.append(result)
            else:
                return
            if self._server.status != pq.ConnStatus.OK:
                raise psycopg.OperationalError("the connection is lost")
        except psycopg.Error as error:
            self.end(error)
            return
        if self._results:
            self._settle(self._results.pop())

    def _settle(self, result: PGresult) -> None:
        self._results = []
        if result.status != pq.ExecStatus.TUPLES_OK:
            error = errors.error_from_result(result)
            if (error.sqlstate or "").startswith(SESSION_ENDS):
                self.end(error)
            self._fail(error)
        elif self._future is not None and not self._future.done():
            self._reader.set_pgresult(result)
            self._future.set_result(self._reader.load_rows(0, result.ntuples, tuple))

    def _fail(self, error: psycopg.Error) -> None:
        """Tell who waits, in Django's words."""
        if self._future is not None and not self._future.done():
            self._future.set_exception(_in_djangos_words(error))


def _in_djangos_words(error: psycopg.Error) -> DatabaseError | InterfaceError:
    """As Django's wrapper has it: its error of the same name."""
    kind = next((kind for kind in KINDS if isinstance(error, getattr(psycopg, kind.__name__))), DatabaseError)
    told = kind(*error.args)
    told.__cause__ = error
    return told
