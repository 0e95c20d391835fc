"""gunicorn's settings for the service, given as `--config python:compliance.serving.config`.

`--bind`, `--workers`, `--graceful-timeout`, `--timeout` and what concerns the parent process may stand beside
it; options of other workers (TLS, keep-alive, limits, access logs) have no effect.
"""

import os
from typing import Any

from gunicorn.errors import ConfigError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

logger_class = "compliance.serving.worker.ServerLog"
worker_class = "compliance.serving.worker.LoopWorker"
# Loaded once, before the workers are forked: they start at once, and share what they only read.
preload_app = True
# A worker whose event loop stands still for so many seconds is replaced.
timeout = 30
# How long requests under way may take when a worker ends.
graceful_timeout = 5
backlog = 1024
control_socket_disable = True


def on_starting(server: Any) -> None:
    """Refuse to serve plain HTTP where TLS was asked for."""
    if server.cfg.is_ssl:
        raise ConfigError("This worker speaks no TLS; put a proxy before it")
