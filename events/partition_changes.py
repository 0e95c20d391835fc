"""Changes of the events table's partitions: one at a time, without long waits for locks."""

import logging
import time
from collections.abc import Callable
from typing import Any

from django.db import IntegrityError, OperationalError
from psycopg import errors

from compliance.stores import sql

log = logging.getLogger(__name__)

RETRY_DELAYS = (0.0, 0.5, 2.0)
MAY_PASS = (
    *(errors.LockNotAvailable, errors.DeadlockDetected, errors.CheckViolation),
    errors.ObjectNotInPrerequisiteState,  # rows came after the archive was written
)
LOCK_TIMEOUT = "300ms"
ADVISORY_LOCK = 0x65_76_65_6E_74_73


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
