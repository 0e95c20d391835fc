"""Sessions of PostgreSQL, for what a transaction cannot hold: a pooler in transaction mode keeps none."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connections

from compliance.core import environments


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
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
            ((is_mine,),) = cursor.fetchall()
        try:
            yield is_mine
        finally:
            if is_mine and direct is None:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
    finally:
        if direct is not None:
            connection.close()
