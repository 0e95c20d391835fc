"""The task of approvals."""

from typing import Any

from compliance.core.clock import now
from compliance.core.tasks import task
from gateway.approvals import services


@task("approvals.sweep")
def sweep(**kwargs: Any) -> None:
    """Mark approvals that have expired, and delete those that ended long ago."""
    services.sweep(now=now())
