"""Advisory locks of PostgreSQL's sessions, for what a transaction cannot hold.

A pooler in transaction mode keeps no session.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import Error, connections

from compliance.core import environments

_TAKE: Final = "SELECT pg_try_advisory_lock(%s)"
_GIVE_BACK: Final = "SELECT pg_advisory_unlock(%s)"


class TurnLock(IntEnum):
    """The keys of the locks under which one process of an environment works at a time."""

    KEY_POOL = 0x706F6F6C  # "pool"
    SEALING = 0x7475726E  # "turn"
    STREAMING = 0x7374726D  # "strm"


@contextmanager
def locked(of: TurnLock | UUID) -> Iterator[bool]:
    """Hold an advisory lock of a session inside the block; yields False where another session has it.

    `of` is a turn, or the id of the row that is worked on: its second half, which is random, is the key.
    It is held over the current environment's connection, or, where that leads to a pooler, over one of its
    own to the server itself.
    """
    key = int.from_bytes(of.bytes[8:], signed=True) if isinstance(of, UUID) else int(of)
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
