"""gunicorn's log lines, written as all others of the service."""

import logging.config
from typing import Any

from django.conf import settings
from gunicorn.glogging import Logger


class ServerLog(Logger):
    """Hands gunicorn's lines to the handlers of the settings; there is no access log."""

    def setup(self, cfg: Any) -> None:
        self.loglevel = logging.INFO
        logging.config.dictConfig(settings.LOGGING)
        for one in (self.error_log, self.access_log):
            one.handlers.clear()
            one.propagate = one is self.error_log
        self.error_log.setLevel(self.loglevel)
