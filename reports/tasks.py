"""The tasks of reports."""

import logging
from typing import Any

from compliance.core.clock import now
from compliance.core.tasks import task
from reports import scheduling, services

log = logging.getLogger(__name__)


@task(services.GENERATE)
def generate(**kwargs: Any) -> None:
    """Generate the report whose turn it is."""
    if not services.generate_next(now=now()):
        log.info("no report may be generated now")


@task("reports.sweep")
def sweep(**kwargs: Any) -> None:
    """Enqueue reports that were left unfinished."""
    services.sweep(now=now())


@task("reports.forget")
def forget(**kwargs: Any) -> None:
    """Delete reports past their retention."""
    if deleted := services.forget(now=now()):
        log.info("%d reports deleted", deleted)


@task("reports.run_schedules")
def run_schedules(**kwargs: Any) -> None:
    """Request the scheduled reports of the periods that are over."""
    scheduling.run_schedules(now=now())
