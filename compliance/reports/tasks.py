"""The tasks of reports."""

import logging
from typing import Any

from compliance.core.clock import now
from compliance.core.tasks import task
from compliance.reports import scheduling, services

log = logging.getLogger(__name__)


@task(services.GENERATE)
def generate(*, report_id: str, **kwargs: Any) -> None:
    """Generate one report, unless it is done or another worker has claimed it."""
    if not services.generate(report_id=report_id, now=now()):
        log.info("report %s needs no generation", report_id)


@task("compliance.reports.sweep")
def sweep(**kwargs: Any) -> None:
    """Enqueue reports that were left unfinished."""
    services.sweep(now=now())


@task("compliance.reports.run_schedules")
def run_schedules(**kwargs: Any) -> None:
    """Request the scheduled reports of the periods that are over."""
    scheduling.run_schedules(now=now())
