"""SQL by hand on the current environment's database, for what the ORM can't say or says too slowly.

    Function                       Placeholders       How the statement goes to the server
    `query`, `execute`             `%s`, `%(name)s`   by Django's cursor, with the values in its text
    `streamed`                     `%s`, `%(name)s`   by Django's cursor of the server, some rows at a time
    `prepared`, `prepared_write`   `%s`, `%(name)s`   prepared once for each connection, values apart
    `asked`                        `$1`               as `prepared`; the same text that `AsyncReader` sends
    `send`                         of the cursor      as `prepared`, over a cursor that the caller made

All return rows, except `execute` and `prepared_write` (counts) and `send` (the cursor).

Errors are Django's (`OperationalError` and the rest; around `send`, by the caller's
`wrap_database_errors`), and an open transaction is the caller's.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeVar

import psycopg
from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model
from psycopg.errors import DeadlockDetected, LockNotAvailable

from compliance.core import environments
from compliance.observing import metrics
from compliance.stores.postgresql.bounded import is_of_hung_server

log = logging.getLogger(__name__)

ROWS_A_STATEMENT: Final = (16, 4, 1)
"""How many rows an INSERT may have: few sizes, so that the server keeps a plan for each."""

OUTAGES: Final = (OperationalError, InterfaceError)
"""Django's errors of a database that did not answer."""

_IN_FORCE: Final = (
    "SELECT found FROM (SELECT tgname || ' ON ' || tgrelid::regclass AS found FROM pg_trigger"
    " WHERE tgenabled IN ('O', 'A')) enabled WHERE found = ANY(%s)"
)

Found = TypeVar("Found")
Params = Sequence[Any] | Mapping[str, Any] | None


Question = tuple[type[Model], str, Params]
"""A model, what follows `FROM <table>`, and its parameters."""


def is_of_lock(error: BaseException) -> bool:
    """Return whether the error is Django's of a statement that failed on a lock time-out or deadlock."""
    return isinstance(error.__cause__, LockNotAvailable | DeadlockDetected)


def error_name(error: BaseException) -> str:
    """Return the error's type and SQLSTATE for a log; its text may tell what a row holds."""
    state = getattr(error.__cause__, "sqlstate", None)
    return f"{type(error).__name__} {state}" if state else type(error).__name__


def query(sql: str, params: Params = None, *, alias: str | None = None) -> list[Any]:
    """The rows of a statement, sent by Django's cursor; of the database `alias` if it is given."""
    with connections[alias or environments.alias()].cursor() as cursor:
        cursor.execute(sql, params)
        rows: list[Any] = cursor.fetchall()
    return rows


def execute(sql: str, params: Params = None, *, alias: str | None = None) -> int:
    """Run a statement, as `query` does; how many rows it touched."""
    with connections[alias or environments.alias()].cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)


def streamed(sql: str, params: Params, *, most: int) -> Generator[list[Any], None, None]:
    """Yield the rows of a statement, at most so many at once, from a server-side cursor.

    It stays open in a transaction until the last row, or until the generator is closed.
    """
    with environments.atomic(), connections[environments.alias()].chunked_cursor() as cursor:
        cursor.execute(sql, params)
        while rows := cursor.fetchmany(most):
            yield rows


def prepared(sql: str, params: Params) -> list[Any]:
    """The rows of a statement that the server plans once for each connection; parameters go apart from it."""
    with driver_cursor() as cursor:
        return send(cursor, sql, params).fetchall()


def prepared_write(sql: str, params: Params) -> int:
    """As `prepared()`, for a statement without rows; how many it wrote (unknown while pipelined)."""
    with driver_cursor() as cursor:
        return send(cursor, sql, params).rowcount


def asked(statement: str, params: Sequence[Any]) -> list[Any]:
    """As `prepared()`, with `$1` where the first parameter belongs, as in a `Query` of the event loop."""
    connection = connected()
    with connection.wrap_database_errors, psycopg.RawCursor(connection.connection) as cursor:
        return send(cursor, statement, params).fetchall()


def array(values: Iterable[object]) -> str:
    """An array of ids or numbers written out: psycopg's own dump of a list costs more than many a query."""
    return f"{{{','.join(map(str, values))}}}"


@contextmanager
def pipelined() -> Iterator[None]:
    """Send the statements of the block together, waiting for the server only where rows are read.

    Errors may show at a later statement or at the end of the block, as Django's. `insert`, `update` and
    `prepared` may stand in it; the ORM's updates, which count rows, may not. Commit after it, not in it.
    """
    connection = connected()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield


def read_together(*questions: Question) -> list[list[Any]]:
    """The rows of several models in one round trip.

    They are asked in order: each question sees what was committed before the one in front ended.
    """
    connection = connected()
    with connection.wrap_database_errors, connection.connection.pipeline():
        cursors = [
            send(psycopg.Cursor(connection.connection), _selection(model)[0] + rest, params)
            for model, rest, params in questions
        ]
        rows = [cursor.fetchall() for cursor in cursors]
    return [
        [model.from_db(connection.alias, _selection(model)[1], row) for row in found]
        for (model, _, _), found in zip(questions, rows, strict=True)
    ]


def insert(*rows: Model) -> None:
    """Insert new rows of one model that makes its keys itself, by prepared statements and without hooks.

    In their order; several share a statement, in groups of a few sizes: all of it only inside a transaction.
    """
    begin = 0
    while begin < len(rows):
        size = next(one for one in ROWS_A_STATEMENT if one <= len(rows) - begin)
        part, begin = rows[begin : begin + size], begin + size
        model = type(part[0])
        values = [one for row in part for one in _values(row, model._meta.concrete_fields)]
        prepared_write(_insertion(model, size), values)
    for row in rows:
        row._state.adding, row._state.db = False, environments.alias()


def update(row: Model, *names: str) -> None:
    """Write these fields of a row that is there (locked, say), by a prepared statement.

    A tenant's row is found by its tenant, too, as `tenant_keys.TenantRow`.
    """
    statement, fields = _update(type(row), names)
    prepared_write(statement, _values(row, fields))


def send(cursor: psycopg.Cursor[Any], sql: str, params: Params) -> psycopg.Cursor[Any]:
    """Run a prepared statement over a cursor of the driver, in the current environment; return the cursor."""
    connection = connections[environments.alias()]
    if connection.queries_logged:
        connection.queries_log.append({"sql": sql, "time": ""})
    name = metrics.environment()
    with metrics.timed(metrics.DATABASE_SECONDS, metrics.DATABASE_ERRORS, name, "prepared"):
        return cursor.execute(sql, params, prepare=True, binary=True)


def _values(row: Model, fields: Sequence["Field[Any, Any]"]) -> list[Any]:
    connection = connections[environments.alias()]
    return [field.get_db_prep_save(getattr(row, field.attname), connection) for field in fields]


@lru_cache
def _selection(model: type[Model]) -> tuple[str, list[str]]:
    """The beginning of a statement that reads rows of a model, and the attributes that it fills."""
    columns = ", ".join(f'"{field.column}"' for field in model._meta.concrete_fields)
    names = [field.attname for field in model._meta.concrete_fields]
    return f'SELECT {columns} FROM "{model._meta.db_table}" ', names  # noqa: S608  (names of ours)


@lru_cache
def _insertion(model: type[Model], count: int) -> str:
    columns = ", ".join(f'"{field.column}"' for field in model._meta.concrete_fields)
    places = ", ".join([f"({', '.join(['%s'] * len(model._meta.concrete_fields))})"] * count)
    return f'INSERT INTO "{model._meta.db_table}" ({columns}) VALUES {places}'  # noqa: S608  (names of ours)


@lru_cache
def _update(model: type[Model], names: tuple[str, ...]) -> tuple[str, list["Field[Any, Any]"]]:
    """The statement that writes these fields of a row, and the fields whose values it takes."""
    fields = {field.name: field for field in model._meta.concrete_fields}
    written, keys = [fields[name] for name in names], [model._meta.pk]
    if "tenant" in fields and not fields["tenant"].primary_key:
        keys.append(fields["tenant"])
    columns = ", ".join(f'"{field.column}" = %s' for field in written)
    condition = " AND ".join(f'"{field.column}" = %s' for field in keys)
    return f'UPDATE "{model._meta.db_table}" SET {columns} WHERE {condition}', [*written, *keys]  # noqa: S608


def read_again(read: Callable[[], Found]) -> Found:
    """Return what `read` finds, by a new connection where the one it asked had died.

    For reads only: what was written by then would be written twice. Inside a transaction, which died with its
    connection, it asks once; so it does a server that has not answered.
    """
    connection = connections[environments.alias()]
    if connection.in_atomic_block:
        return read()
    connection.close_if_unusable_or_obsolete()
    was_open = connection.connection is not None
    try:
        return read()
    except (OperationalError, InterfaceError) as error:
        connection.close_if_unusable_or_obsolete()
        has_died = was_open and connection.connection is None
        if not has_died or is_of_hung_server(error):
            raise
        return read()


@contextmanager
def driver_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """psycopg's own cursor, for prepared statements and binary results."""
    connection = connected()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        yield cursor


def connected() -> BaseDatabaseWrapper:
    """The current environment's connection, opened, or opened anew where it was found dead."""
    connection = connections[environments.alias()]
    connection.close_if_health_check_failed()
    connection.ensure_connection()
    return connection


def triggers_not_in_force(wanted: Iterable[str]) -> set[str]:
    """Return those of `wanted`, each `trigger ON table`, that are missing or disabled (`tgenabled`)."""
    names = set(wanted)
    return names - {name for (name,) in query(_IN_FORCE, [list(names)])}
