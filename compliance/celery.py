"""The worker's and beat's entry point: `celery -A compliance.celery worker|beat`."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django
from celery.signals import beat_init, worker_init, worker_ready
from django.db import connections

django.setup()

from compliance.core.environments import Environment  # noqa: E402
from compliance.core.tasks import ENVIRONMENT_HEADER, app  # noqa: E402
from compliance.observing import metrics_server  # noqa: E402
from compliance.serving.tuning import spare_memory  # noqa: E402
from ops import heartbeat  # noqa: E402
from ops.scheduling import staggered  # noqa: E402

app.autodiscover_tasks(
    [
        *("compliance.api", "auditlog", "webhooks", "incidents", "certificates", "events"),
        *("delegation", "gateway.approvals", "reports"),
    ],
    force=True,
)

# What runs by the clock, in both environments: upkeep, and sweeps for the work of messages that were lost.
PERIODS_SECONDS = {
    "auditlog.seal": 5.0,
    "auditlog.cosign": 10.0,
    "auditlog.drop_expired": 3600.0,
    "webhooks.sweep": 5.0,
    "certificates.publish_due_crls": 15.0,
    "certificates.expire": 60.0,
    "certificates.fill_key_pool": 30.0,
    "certificates.settle_unfinished": 300.0,
    "certificates.maintain_responders": 60.0,
    "events.sweep_high_risk": 20.0,
    "events.take_in_reviews": 30.0,
    "events.snapshot_scorer": 60.0,
    "events.pool_baselines": 60.0,
    "events.forget_snapshots": 3600.0,
    "delegation.maintain_keys": 60.0,
    "delegation.forget_issued": 3600.0,
    "events.sum_up_risk": 60.0,
    "events.sum_up_days": 120.0,
    "events.fade_risk": 3600.0,
    "events.maintain_partitions": 3600.0,
    "events.sweep_simulations": 30.0,
    "incidents.watch": 30.0,
    "approvals.sweep": 30.0,
    "reports.sweep": 30.0,
    "reports.run_schedules": 300.0,
    "reports.forget": 3600.0,
    "auditlog.destroy_ended_keys": 3600.0,
    "compliance.api.forget_answers": 3600.0,
    heartbeat.TASK: heartbeat.PERIOD_SECONDS,
}


CONNECTION_SECONDS = 600
"""After how long a worker's thread replaces its connections."""


def schedule() -> dict[str, dict[str, Any]]:
    """One entry for each task and environment."""
    entries = {
        f"{task}@{environment.value}": (task, environment)
        for task in PERIODS_SECONDS
        for environment in Environment
    }
    times = staggered({name: PERIODS_SECONDS[task] for name, (task, _) in entries.items()})
    return {
        name: {
            "task": task,
            "schedule": times[name],
            "options": {
                "headers": {ENVIRONMENT_HEADER: environment.value},
                "expires": PERIODS_SECONDS[task] * 5,
            },
        }
        for name, (task, environment) in entries.items()
    }


app.conf.beat_schedule = schedule()
app.conf.beat_scheduler = "ops.scheduling:LeasedScheduler"


def _begin(**kwargs: Any) -> None:
    """Have the worker's threads share arenas, before they start, and give connections an age.

    A session keeps what it learned of each task, and threads run them all.
    """
    spare_memory()
    for database in connections.settings.values():
        if database["CONN_MAX_AGE"] is None:
            database["CONN_MAX_AGE"] = CONNECTION_SECONDS


def _serve_metrics(**kwargs: Any) -> None:
    metrics_server.start()


worker_init.connect(_begin, weak=False)
worker_ready.connect(_serve_metrics, weak=False)
beat_init.connect(_serve_metrics, weak=False)
