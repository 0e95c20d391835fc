"""The time of the current environment's database, by which nodes judge each other's leases."""

import time
from datetime import datetime, timedelta
from typing import Final

from compliance.core.clock import now
from compliance.stores import sql

ASK_SECONDS: Final = 5.0


class DatabaseClock:
    """The database's time, asked for now and then and counted on by the monotonic clock in between.

    Before it was asked it tells this machine's time.
    """

    def __init__(self) -> None:
        self._told = (now(), time.monotonic())
        self._due_at = float("-inf")

    def now(self) -> datetime:
        """Return the present moment in UTC; from any thread, and asks nobody."""
        told, at = self._told
        return told + timedelta(seconds=time.monotonic() - at)

    def ask_if_due(self) -> None:
        """Ask the database if that was long ago. Raises: Django's errors."""
        began = time.monotonic()
        if began < self._due_at:
            return
        ((told,),) = sql.query("SELECT clock_timestamp()")
        self._told, self._due_at = (told, time.monotonic()), began + ASK_SECONDS
