"""The worker's and beat's entry point: `celery -A compliance.celery worker|beat`."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "compliance.settings")

import django
from celery.signals import beat_init, worker_init, worker_ready
from django.db import connections

django.setup()

from compliance.api import idempotency  # noqa: E402
from compliance.core.environments import Environment  # noqa: E402
from compliance.core.tasks import ENVIRONMENT_HEADER, app, task_calling  # noqa: E402
from compliance.observing import metrics_server  # noqa: E402
from compliance.serving.tuning import spare_memory  # noqa: E402
from gateway.approvals import services as approvals  # noqa: E402
from incidents.duties.watch import watch  # noqa: E402
from ops import heartbeat  # noqa: E402
from ops.scheduling import staggered  # noqa: E402

app.autodiscover_tasks(
    ["auditlog", "webhooks", "agents", "certificates", "events", "delegation", "reports"],
    force=True,
)
task_calling("compliance.api.forget_answers", idempotency.forget)
task_calling("incidents.watch", watch)
task_calling("approvals.sweep", approvals.sweep)

# What runs by the clock, in both environments: upkeep, and sweeps for the work of messages that were lost.
PERIODS_SECONDS = {
    "auditlog.seal": 15.0,
    "auditlog.cosign": 60.0,
    "auditlog.drop_expired": 3600.0,
    "webhooks.sweep": 30.0,
    "agents.send_mails": 60.0,
    "certificates.publish_due_crls": 30.0,
    "certificates.sweep_ends": 30.0,
    "certificates.sweep_renewals": 30.0,
    "certificates.fill_key_pool": 60.0,
    "certificates.settle_unfinished": 300.0,
    "certificates.maintain_responders": 60.0,
    "events.sweep_high_risk": 20.0,
    "events.find_dormant": 3600.0,
    "events.end_dormancies": 60.0,
    "events.take_in_reviews": 60.0,
    "events.snapshot_scorer": 60.0,
    "events.pool_baselines": 60.0,
    "events.forget_snapshots": 3600.0,
    "events.forget_spans": 600.0,
    "delegation.maintain_keys": 60.0,
    "stops.sweep": 15.0,
    "reviews.sweep": 15.0,
    "delegation.forget_issued": 3600.0,
    "events.sum_up": 60.0,
    "events.stream": 15.0,
    "events.fade_risk": 3600.0,
    "events.maintain_partitions": 3600.0,
    "events.sweep_simulations": 60.0,
    "incidents.watch": 60.0,
    "approvals.sweep": 60.0,
    "reports.sweep": 60.0,
    "reports.run_schedules": 300.0,
    "reports.forget": 3600.0,
    "compliance.api.forget_answers": 3600.0,
    heartbeat.TASK: heartbeat.PERIOD_SECONDS,
}


CONNECTION_SECONDS = 600
"""After how long a worker's thread replaces its connections."""


def schedule() -> dict[str, dict[str, Any]]:
    """Return an entry for each task; one message has it run in both environments, live first."""
    times = staggered(PERIODS_SECONDS)
    return {
        task: {
            "task": task,
            "schedule": times[task],
            "options": {"headers": {ENVIRONMENT_HEADER: ",".join(Environment)}, "expires": period * 5},
        }
        for task, period in PERIODS_SECONDS.items()
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


worker_init.connect(_begin, weak=False)
for _signal in (worker_ready, beat_init):
    _signal.connect(lambda **_: metrics_server.start(), weak=False)
