"""Rows by COPY, with what has to be written beside them: one transaction of two round trips.

Asked of libpq itself. A statement and the COPY stand in one message, so that a transaction needs neither
BEGIN nor COMMIT, and the statement is a prepared one: together a third of what five round trips through the
driver cost either side.
"""

import re
import select
from typing import Any, NamedTuple

import psycopg
from psycopg import errors, pq
from psycopg.pq.abc import PGconn, PGresult

from compliance import sql

_PARAMETER = re.compile(r"\$(\d+)")


class Statement(NamedTuple):
    """One that each connection prepares under `name` when it first needs it.

    Its parameters stand as `$1` in the text and are of these types.
    """

    name: str
    types: tuple[str, ...]
    text: str


class Call(NamedTuple):
    """A statement with its parameters, as literals without quotes in them: numbers, ids, moments."""

    statement: Statement
    literals: tuple[str, ...]

    @property
    def by_name(self) -> str:
        """For a connection that has prepared it."""
        return f"EXECUTE {self.statement.name}({', '.join(map(_quoted, self.literals))})"

    @property
    def in_full(self) -> str:
        """For any connection."""
        typed = zip(self.literals, self.statement.types, strict=True)
        values = [f"{_quoted(literal)}::{kind}" for literal, kind in typed]
        return _PARAMETER.sub(lambda found: values[int(found[1]) - 1], self.statement.text)


def copy_in(copy: str, data: bytes, *, beside: Call | None = None) -> None:
    """Have `COPY … FROM STDIN` take in `data`, and `beside` be done, both or neither.

    Outside a transaction they are committed on return. Raises Django's errors.
    """
    connection = sql.connected()
    with connection.wrap_database_errors:
        _copy(connection.connection, copy, data, beside)


def _copy(connection: "psycopg.Connection[Any]", copy: str, data: bytes, beside: Call | None) -> None:
    server = connection.pgconn
    if not connection.autocommit:
        # A name that is unknown would end the caller's transaction, and the driver drops what is prepared.
        begin = ["BEGIN"] if server.transaction_status == pq.TransactionStatus.IDLE else []
        _begin(server, [*begin, *([beside.in_full] if beside else []), copy])
    elif beside is None:
        _begin(server, [copy])
    else:
        try:
            _begin(server, [beside.by_name, copy])
        except errors.InvalidSqlStatementName:
            _prepare(server, beside.statement)
            _begin(server, [beside.by_name, copy])
    server.put_copy_data(data)
    server.put_copy_end()
    _wait(server)
    result = server.get_result()
    while server.get_result() is not None:
        pass
    if result is None or result.status != pq.ExecStatus.COMMAND_OK:
        raise _error(server, result)


def _wait(server: PGconn) -> None:
    """Wait until what was sent has its result; libpq itself would wait with the interpreter locked."""
    poll = select.poll()
    poll.register(server.socket, select.POLLIN | select.POLLOUT)
    while server.flush():
        poll.poll()
        server.consume_input()
    poll.modify(server.socket, select.POLLIN)
    while server.is_busy():
        poll.poll()
        server.consume_input()


def _begin(server: PGconn, statements: list[str]) -> None:
    """Send them, the last being the COPY, which then waits for its data."""
    result = server.exec_("; ".join(statements).encode())
    if result.status != pq.ExecStatus.COPY_IN:
        raise _error(server, result)


def _prepare(server: PGconn, statement: Statement) -> None:
    types = ", ".join(statement.types)
    result = server.exec_(f"PREPARE {statement.name} ({types}) AS {statement.text}".encode())
    if result.status != pq.ExecStatus.COMMAND_OK:
        raise _error(server, result)


def _error(server: PGconn, result: PGresult | None) -> psycopg.Error:
    if result is None or server.status != pq.ConnStatus.OK:
        return psycopg.OperationalError("the connection is lost")
    return errors.error_from_result(result)


def _quoted(literal: str) -> str:
    if "'" in literal or "\\" in literal:
        raise ValueError("a literal with a quote")
    return f"'{literal}'"
