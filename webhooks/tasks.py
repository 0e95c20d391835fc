"""The engine of deliveries."""

import logging
from typing import Any
from uuid import UUID

from compliance.clock import now
from compliance.tasks import task
from webhooks import delivering
from webhooks.services import DELIVER

log = logging.getLogger(__name__)


@task(DELIVER)
def deliver(*, delivery_id: str, **_: Any) -> None:
    """Make the next attempt of a delivery; without effect when there is nothing to do."""
    if delivering.deliver(delivery_id=UUID(delivery_id), now=now()) is None:
        log.debug("delivery %s: nothing to send now", delivery_id)


@task("webhooks.sweep")
def sweep(**_: Any) -> None:
    """Ring for what the bells missed."""
    count = delivering.sweep(now=now())
    if count:
        log.info("rang for %d deliveries", count)
