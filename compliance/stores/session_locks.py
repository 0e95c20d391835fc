"""Advisory locks of PostgreSQL's sessions, for what a transaction cannot hold.

A pooler in transaction mode keeps no session.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.db import Error, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from compliance.core import environments

_ALONE: Final = ("SELECT pg_try_advisory_lock(%s)", "SELECT pg_advisory_unlock(%s)")
_SHARED: Final = ("SELECT true FROM pg_advisory_lock_shared(%s)", "SELECT pg_advisory_unlock_shared(%s)")


@contextmanager
def locked(key: int, *, shared: bool = False) -> Iterator[bool]:
    """Hold an advisory lock of a session inside the block; yields False where another session has it.

    One that is shared with others is waited for. It is held over the current environment's connection, or,
    where that leads to a pooler, over one of its own to the server itself.
    """
    alias = environments.alias()
    take, give_back = _SHARED if shared else _ALONE
    connection, direct = connections[alias], settings.DATABASES_DIRECT.get(alias)
    if direct is not None:
        connection = connection.copy()
        connection.settings_dict.update(direct)
    try:
        with connection.cursor() as cursor:
            cursor.execute(take, [key])
            ((is_mine,),) = cursor.fetchall()
        try:
            yield is_mine
        finally:
            if is_mine and direct is None:
                _give_back(connection, give_back, key)
    finally:
        if direct is not None:
            connection.close()


def _give_back(connection: BaseDatabaseWrapper, statement: str, key: int) -> None:
    """Release the lock; a session that cannot is ended, and its locks with it."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, [key])
    except Error:
        connection.close()
        raise
