"""The engine of deliveries."""

import logging
import time
from typing import Any
from uuid import UUID

from compliance.clock import now
from compliance.tasks import enqueue, task
from webhooks import delivering
from webhooks.services import DELIVER

log = logging.getLogger(__name__)

# How long a worker's thread stays with one endpoint's waiting deliveries before others get their turn.
TURN_SECONDS = 1.0


@task(DELIVER)
def deliver(*, delivery_id: str, **_: Any) -> None:
    """Make the next attempt of a delivery, then of what waits for the same endpoint.

    Without effect when there is nothing to do now: the bell may ring twice, or in vain.
    """
    until = time.monotonic() + TURN_SECONDS
    waiting: UUID | None = UUID(delivery_id)
    while waiting and time.monotonic() < until:
        turn = delivering.deliver(delivery_id=waiting, now=now())
        waiting = turn.next_id if turn else None
    if waiting:
        enqueue(DELIVER, delivery_id=str(waiting))


@task("webhooks.sweep")
def sweep(**_: Any) -> None:
    """Ring for what the bells missed."""
    count = delivering.sweep(now=now())
    if count:
        log.info("rang for %d deliveries", count)
