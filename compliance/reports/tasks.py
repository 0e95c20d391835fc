"""Reports in the worker."""

import logging
from typing import Any

from compliance.clock import now
from compliance.reports import services
from compliance.tasks import task

log = logging.getLogger(__name__)


@task(services.GENERATE)
def generate(*, report_id: str, **kwargs: Any) -> None:
    """Generate one report; done already, or another worker's, is no error."""
    if not services.generate(report_id=report_id, now=now()):
        log.info("report %s needs no generation", report_id)


@task("compliance.reports.sweep")
def sweep(**kwargs: Any) -> None:
    """Ring for reports that were left behind."""
    services.sweep(now=now())
