"""Web processes, Celery and logs."""

import sys
from typing import Any

from compliance.settings.declaring import Section
from compliance.settings.service import SERVICE_NAME
from compliance.settings.stores import BROKER_URL

section = Section("Processes and logs")

WEB_THREADS: int = section.integer("WEB_THREADS", 8, least=1)
section.flag("COMPILED", "1", parse=str, takes_file=False)

# PostgreSQL holds all work to do; a message only tells of it early.
CELERY_BROKER_URL = BROKER_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "socket_timeout": 2.0,
    "socket_connect_timeout": 1.0,
    # One try: a request would wait through the pauses between several. A worker retries for ever.
    "max_retries": 0,
    "global_keyprefix": f"{SERVICE_NAME}:celery:",
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# Tasks look after their connections themselves: Celery would close them around each task.
CELERY_DB_REUSE_MAX = sys.maxsize
# What is promised within seconds has a queue and a worker of its own; all else is in the queue "celery".
CELERY_TASK_ROUTES = {
    name: {"queue": "urgent"}
    for name in (
        *("auditlog.seal", "certificates.publish_crl", "certificates.publish_due_crls"),
        *("ops.heartbeat", "events.sweep_high_risk", "stops.work", "stops.sweep"),
    )
}

LOG_LEVEL: str = section.text("LOG_LEVEL", "INFO")
LOG_FORMAT: str = section.text("LOG_FORMAT", "json")
# Ids and statuses; never keys, tokens or payloads.
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"client_faults": {"()": "compliance.observing.logs.ClientFaultFilter"}},
    "formatters": {"line": {"()": "compliance.observing.logs.LineFormatter", "style": LOG_FORMAT}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["client_faults"]}
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "celery": {"level": "WARNING"},
        # It logs malformed answers with the receiver's URL, which may carry a token.
        "urllib3": {"level": "ERROR"},
    },
}

METRICS_DIR: str = section.text("METRICS_DIR", "")
METRICS_TOKEN: str = section.text("METRICS_TOKEN", "", secret=True)
METRICS_LISTEN: str = section.text("METRICS_LISTEN", "")
