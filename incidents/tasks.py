"""The task of incidents."""

from typing import Any

from compliance.core.clock import now
from compliance.core.tasks import task
from incidents.duties.watch import watch


@task("incidents.watch")
def watch_clocks(**kwargs: Any) -> None:
    """Announce clocks that are near their end or past it."""
    watch(now=now())
