"""What each log line carries beside its message, and how little clients can have written."""

import logging
from threading import Lock
from time import monotonic

from compliance import environments

CLIENT_FAULTS = "django.security"
"""The loggers of what a request brings about and no defect does, by what their names begin with."""
QUIET_SECONDS = 60.0


class EnvironmentFilter(logging.Filter):
    """Adds `environment` (live, test or -) to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.environment = environments.current_or_none() or "-"
        return True


class ClientFaultFilter(logging.Filter):
    """Lets one line a minute pass for each kind of fault that clients cause, without its traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(CLIENT_FAULTS):
            return True
        record.exc_info = record.exc_text = None
        with self._lock:
            now = monotonic()
            is_due = now >= self._said.get(record.name, -QUIET_SECONDS) + QUIET_SECONDS
            if is_due:
                self._said[record.name] = now
        return is_due
