"""Web processes, Celery and logs."""

import sys
from typing import Any

from compliance.settings.declaring import Section
from compliance.settings.service import SERVICE_NAME
from compliance.settings.stores import BROKER_URL

section = Section("Processes and logs")

WEB_THREADS: int = section.integer("WEB_THREADS", 8, "Threads of each web worker's Django process.", least=1)
section.external(
    "COMPILED",
    "flag",
    "1",
    "With 0 the scorer runs as Python even if it was compiled; read before the settings load.",
)

# PostgreSQL holds all work to do; a message only tells of it early.
CELERY_BROKER_URL = BROKER_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 2.0,
    "socket_connect_timeout": 1.0,
    # One try: a request would wait through the pauses between several. A worker retries for ever.
    "max_retries": 0,
    "global_keyprefix": f"{SERVICE_NAME}:celery:",
    "visibility_timeout": 3600,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Tasks look after their connections themselves: Celery would close them around each task.
CELERY_DB_REUSE_MAX = sys.maxsize
CELERY_TIMEZONE = "UTC"

LOG_LEVEL: str = section.text("LOG_LEVEL", "INFO", "Least severe level of the lines logged.")
LOG_FORMAT: str = section.text(
    "LOG_FORMAT", "json", "`json`: one document a line; `console`: text for a person."
)
# Ids and statuses; never keys, tokens or payloads.
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"client_faults": {"()": "compliance.observing.logs.ClientFaultFilter"}},
    "formatters": {"line": {"()": "compliance.observing.logs.formatter", "style": LOG_FORMAT}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["client_faults"],
        }
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "celery": {"level": "WARNING"},
        # It logs malformed answers with the receiver's URL, which may carry a token.
        "urllib3": {"level": "ERROR"},
    },
}

METRICS_DIR: str = section.text(
    "METRICS_DIR",
    "",
    "Folder where processes of a machine or container share their metrics, best on tmpfs; empty: no metrics.",
)
METRICS_TOKEN: str = section.text(
    "METRICS_TOKEN",
    "",
    "Token that readers of `/metrics` present (`Authorization: Bearer`); without it the web answers 404.",
    secret=True,
)
METRICS_LISTEN: str = section.text(
    "METRICS_LISTEN",
    "",
    "Address and port where a worker, sender, beat or key host serves `/metrics`; other than on loopback with"
    " the token only.",
)
OTEL_EXPORTER_OTLP_ENDPOINT: str = section.text(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "",
    "Where spans are sent (OTLP over HTTP) if requirements-otel.txt is installed; empty: none are made.",
)
