"""Keep contents as they are while a log is verified on Citus, whose nodes' snapshots are not of one moment.

On plain PostgreSQL one snapshot is enough, and nothing waits.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings

from auditlog.errors import BeingVerified, NotSettled
from compliance.stores import session_locks, sql

LOCK: Final = 0x7374696C  # "stil": held in shared mode by verifications, alone by what removes contents
SETTLED_WITHIN_SECONDS: Final = 30
OTHERS_WITHIN_SECONDS: Final = 5
_ALONE: Final = "SELECT pg_try_advisory_xact_lock(%s)"
# A transaction that has committed at the coordinator ends at the workers a moment later.
_PREPARED: Final = """
SELECT nodeport::text || ' ' || gid FROM run_command_on_workers(
    'SELECT coalesce(string_agg(gid, '' ''), '''') FROM pg_prepared_xacts WHERE database = current_database()'
) found, string_to_table(found.result, ' ') gid
"""


@contextmanager
def contents_kept() -> Iterator[None]:
    """Let nothing be erased or dropped inside the block; it begins when what was is done on all nodes.

    Raises: NotSettled.
    """
    if not settings.DATABASE_CITUS:
        yield
        return
    with session_locks.locked(LOCK, shared=True):
        _settle()
        yield


def demand_change() -> None:
    """Let no verification begin before the transaction has ended. Raises: BeingVerified."""
    # Another erasure is done soon.
    ends = time.monotonic() + OTHERS_WITHIN_SECONDS
    while settings.DATABASE_CITUS and not sql.query(_ALONE, [LOCK])[0][0]:
        if time.monotonic() > ends:
            raise BeingVerified()
        time.sleep(0.05)


def _settle() -> None:
    waiting, ends = _prepared(), time.monotonic() + SETTLED_WITHIN_SECONDS
    while waiting:
        if time.monotonic() > ends:
            raise NotSettled()
        time.sleep(0.1)
        waiting &= _prepared()


def _prepared() -> set[str]:
    """Return the transactions that are prepared at workers."""
    return {name for (name,) in sql.query(_PREPARED)}
