"""Advisory locks of PostgreSQL's sessions, for what a transaction cannot hold.

A pooler in transaction mode keeps no session.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.db import Error, connections

from compliance.core import environments

_TAKE: Final = "SELECT pg_try_advisory_lock(%s)"
_GIVE_BACK: Final = "SELECT pg_advisory_unlock(%s)"


@contextmanager
def locked(key: int) -> Iterator[bool]:
    """Hold an advisory lock of a session inside the block; yields False where another session has it.

    It is held over the current environment's connection, or, where that leads to a pooler, over one of its
    own to the server itself.
    """
    alias = environments.alias()
    connection, direct = connections[alias], settings.DATABASES_DIRECT.get(alias)
    if direct is not None:
        connection = connection.copy()
        connection.settings_dict.update(direct)
    try:
        with connection.cursor() as cursor:
            cursor.execute(_TAKE, [key])
            ((is_mine,),) = cursor.fetchall()
        try:
            yield is_mine
        finally:
            if is_mine and direct is None:
                try:
                    with connection.cursor() as cursor:
                        cursor.execute(_GIVE_BACK, [key])
                except Error:
                    connection.close()  # ends the session, and its locks with it
                    raise
    finally:
        if direct is not None:
            connection.close()
