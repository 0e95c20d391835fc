"""What each log line carries beside its message."""

import logging

from compliance import environments


class EnvironmentFilter(logging.Filter):
    """Adds `environment` (live, test or -) to every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.environment = environments.current_or_none() or "-"
        return True
