"""The partitions of the events table, and changes of them: one at a time, without long waits for locks."""

import logging
import re
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import IntegrityError, OperationalError
from psycopg import errors

from compliance.core.identifiers import moment_of
from compliance.stores import sql
from events.archiving.spans import TABLE, Partition

log = logging.getLogger(__name__)

RETRY_DELAYS = (0.0, 0.5, 2.0)
MAY_PASS = (
    *(errors.LockNotAvailable, errors.DeadlockDetected, errors.CheckViolation),
    errors.ObjectNotInPrerequisiteState,  # rows came after the archive was written
)
LOCK_TIMEOUT = "300ms"
ADVISORY_LOCK = 0x65_76_65_6E_74_73
_BOUNDS = re.compile(r"FROM \('([0-9a-f-]{36})'\) TO \('([0-9a-f-]{36})'\)")


def listed() -> list[Partition]:
    """Return the present partitions, oldest first, without the default."""
    rows = sql.query(
        "SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i"
        " JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = %s::regclass",
        [TABLE],
    )
    found = [
        Partition(name, moment_of(UUID(match[1])), moment_of(UUID(match[2])))
        for name, bounds in rows
        # The bounds are NULL while the partition is being dropped.
        if bounds and (match := _BOUNDS.search(bounds))
    ]
    return sorted(found, key=lambda partition: partition.start)


def overlapping(partition: Partition) -> Partition | None:
    """Return a present partition that covers part of the same time."""
    rivals = (one for one in listed() if one.start < partition.end and partition.start < one.end)
    return next(rivals, None)


def begin() -> None:
    """Begin a change in the current transaction, which ends it; a rival's change waits, but not for long."""
    sql.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
    sql.execute("SET LOCAL statement_timeout = 0")
    sql.query("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_LOCK])


def patiently(step: Callable[[], Any]) -> Any:
    """Return the result of `step`, tried a few times; None if it fails each time for what may pass."""
    for delay in RETRY_DELAYS:
        time.sleep(delay)
        try:
            return step()
        except (OperationalError, IntegrityError) as error:
            cause = error.__cause__
            if not isinstance(cause, MAY_PASS):
                raise
            log.info("partition maintenance waits: %s", type(cause).__name__)
    return None
