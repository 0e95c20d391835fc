"""The tasks of reports."""

import logging
from typing import Any

from compliance.core.clock import now
from compliance.core.tasks import task, task_calling
from reports import scheduling, services

log = logging.getLogger(__name__)

sweep = task_calling("reports.sweep", services.sweep)
forget = task_calling("reports.forget", services.forget, level=logging.INFO)
run_schedules = task_calling("reports.run_schedules", scheduling.run_schedules)


@task(services.GENERATE)
def generate(**kwargs: Any) -> None:
    """Generate the report whose turn it is."""
    if not services.generate_next(now=now()):
        log.info("no report may be generated now")
