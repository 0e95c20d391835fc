"""SQL by hand on the current environment's database, for what the ORM can't say or says too slowly.

Errors are Django's (`OperationalError` and the rest), and an open transaction is the caller's.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from django.db import InterfaceError, OperationalError, connections

from compliance import environments

Found = TypeVar("Found")
Params = Sequence[Any] | Mapping[str, Any] | None


def query(sql: str, params: Params = None) -> list[Any]:
    """The rows of a statement."""
    with connections[environments.current().alias].cursor() as cursor:
        cursor.execute(sql, params)
        rows: list[Any] = cursor.fetchall()
    return rows


def execute(sql: str, params: Params = None) -> int:
    """Run a statement; how many rows it touched."""
    with connections[environments.current().alias].cursor() as cursor:
        cursor.execute(sql, params)
        return int(cursor.rowcount)


def prepared(sql: str, params: Params) -> list[Any]:
    """The rows of a statement that the server plans once for each connection; parameters go apart from it."""
    connection = connections[environments.current().alias]
    if connection.queries_logged:
        connection.queries_log.append({"sql": sql, "time": ""})
    with driver_cursor() as cursor:
        return cursor.execute(sql, params, prepare=True, binary=True).fetchall()


def read_again(read: Callable[[], Found]) -> Found:
    """What `read` finds; where the connection that it asked had died meanwhile, it asks a new one.

    For reads only: what was written by then would be written twice.
    """
    connection = connections[environments.current().alias]
    connection.close_if_unusable_or_obsolete()
    was_open = connection.connection is not None
    try:
        return read()
    except (OperationalError, InterfaceError):
        connection.close_if_unusable_or_obsolete()
        if not was_open or connection.connection is not None:
            raise
        return read()


@contextmanager
def driver_cursor() -> Iterator[psycopg.Cursor[Any]]:
    """psycopg's own cursor, for COPY and prepared statements."""
    connection = connections[environments.current().alias]
    connection.ensure_connection()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        yield cursor
