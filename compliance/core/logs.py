"""Filters of log lines: add the environment, and bound what clients can cause to be written."""

import logging
from threading import Lock
from time import monotonic

from compliance.core import environments

CLIENT_FAULTS = "django.security"  # prefix of the loggers of faulty requests
QUIET_SECONDS = 60.0


class EnvironmentFilter(logging.Filter):
    """Add `environment` (live, test or -) to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.environment = environments.current_or_none() or "-"
        return True


class ClientFaultFilter(logging.Filter):
    """Pass one line a minute for each kind of client fault, without its traceback."""

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
