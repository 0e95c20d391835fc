"""gunicorn's settings for the service, given as `--config python:compliance.serving.config`.

`--bind`, `--workers` and every other option may stand beside it.
"""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

worker_class = "compliance.serving.worker.LoopWorker"
# Loaded once, before the workers are forked: they start at once, and share what they only read.
preload_app = True
# A worker whose event loop stands still for so many seconds is replaced.
timeout = 30
# How long requests under way may take when a worker ends.
graceful_timeout = 5
backlog = 1024
control_socket_disable = True
