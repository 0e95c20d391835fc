"""Statements asked from the event loop: no thread is woken for them, and nobody waits for the interpreter.

Django opens the connection, with its settings; libpq is then asked through psycopg without waiting.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from itertools import count
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

MOST_PREPARED = 100
"""Statements that stay prepared on a connection: those that were asked last."""
SLICE = 16
HOLD_SECONDS = 0.002
"""Rows are unpacked so many at a time, and after so long others have their turn."""
KINDS = (
    DataError, OperationalError, IntegrityError, InternalError, ProgrammingError, NotSupportedError,
    InterfaceError,
)  # fmt: skip
SESSION_ENDS = "57P"
"""Errors with which the server ends a session: it was told to, or shuts down."""
BINARY = pq.Format.BINARY

Rows = list[tuple[Any, ...]]


class LoopConnection:
    """A connection of its own to an environment's database, for reads, each prepared when first asked.

    Parameters stand as `$1` in a statement. Its caller waits for the rows before it asks again.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._link: _Link | None = None

    async def rows(self, statement: str, *params: bytes) -> Rows:
        """The rows; where the connection had died meanwhile, those that a new one finds.

        Raises Django's errors: `OperationalError` when PostgreSQL is away.
        """
        link = self._link
        if link is not None and link.is_open:
            try:
                return await link.ask(statement, params)
            except (OperationalError, InterfaceError):
                if link.is_open:
                    raise
        loop = asyncio.get_running_loop()
        self._link = _Link(await loop.run_in_executor(None, _connected, self._environment), loop)
        return await self._link.ask(statement, params)

    def close(self) -> None:
        """Let the connection go; whoever waits for rows meets an error."""
        if self._link is not None:
            self._link.end(psycopg.InterfaceError("closed"))


def _connected(environment: Environment) -> Any:
    """Django's connection."""
    database = connections.create_connection(environment.alias)
    database.ensure_connection()
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
        self._names: dict[str, bytes] = {}
        self._numbers = count()
        self._results: list[PGresult] = []
        self._future: asyncio.Future[PGresult] | None = None
        # A number of our own: libpq closes its one as soon as the connection is lost.
        self._socket = os.dup(self._server.socket)
        loop.add_reader(self._socket, self._read)

    async def ask(self, statement: str, params: Sequence[bytes]) -> Rows:
        """The statement's rows."""
        name = self._names.pop(statement, None)
        if name is None:
            name = await self._prepare(statement)
        self._names[statement] = name
        result = await self._exchange(
            lambda: self._server.send_query_prepared(name, params, result_format=BINARY)
        )
        return await self._unpacked(result)

    async def _prepare(self, statement: str) -> bytes:
        """The name under which the statement is now known; the one not asked for longest makes room."""
        if len(self._names) >= MOST_PREPARED:
            oldest = self._names.pop(next(iter(self._names)))
            await self._exchange(lambda: self._server.send_query(b"DEALLOCATE " + oldest))
        name = b"asked_%d" % next(self._numbers)
        await self._exchange(lambda: self._server.send_prepare(name, statement.encode()))
        return name

    async def _unpacked(self, result: PGresult) -> Rows:
        """The rows; of many bytes a few at a time, so that nobody else waits long."""
        self._reader.set_pgresult(result)
        rows: Rows = []
        until = self._loop.time() + HOLD_SECONDS
        for start in range(0, result.ntuples, SLICE):
            if self._loop.time() > until:
                await asyncio.sleep(0)
                until = self._loop.time() + HOLD_SECONDS
            rows += self._reader.load_rows(start, min(start + SLICE, result.ntuples), tuple)
        return rows

    def _exchange(self, send: Callable[[], None]) -> asyncio.Future[PGresult]:
        """Send, and the result to come."""
        self._future = future = self._loop.create_future()
        self._results = []
        try:
            send()
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
        if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            error = errors.error_from_result(result)
            if (error.sqlstate or "").startswith(SESSION_ENDS):
                self.end(error)
            self._fail(error)
        elif self._future is not None and not self._future.done():
            self._future.set_result(result)

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
