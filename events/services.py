"""Ingesting events."""

from collections.abc import Sequence
from datetime import datetime
from threading import Lock
from uuid import UUID

from compliance.core.errors import ServiceError, Unavailable
from events.ingest.event_input import EventInput
from events.ingest.ingestion import Submission, ingest_all
from events.ingest.storage import ScoredEvent

LONGEST_WAIT_SECONDS = 5.0
_batch_lock = Lock()


def ingest(*, tenant_id: UUID, event: EventInput, now: datetime) -> ScoredEvent:
    """Score and store one event, which is durable on return outside a transaction.

    A high-risk event locks the agent and runs `threshold.react()` in the same transaction. Raises
    `AgentNotFound`, and `AgentNotActive` for an agent that is not active or has no active certificate.
    """
    (outcome,) = ingest_all([Submission(tenant_id, event, now)])
    if isinstance(outcome, ServiceError):
        raise outcome
    return outcome


def ingest_batch(
    *, tenant_id: UUID, inputs: Sequence[EventInput | ServiceError], now: datetime
) -> list[ScoredEvent | ServiceError]:
    """Score and store events in their order; return each one's row or error. Errors in `inputs` stay.

    What was refused before it got here is in the list as its error, and stays in its place.
    Batches take turns in a process, so that they don't overtake each other's learning. Raises `Unavailable`
    when the turn doesn't come.
    """
    submissions = [
        Submission(tenant_id, event, now) for event in inputs if not isinstance(event, ServiceError)
    ]
    if not _batch_lock.acquire(timeout=LONGEST_WAIT_SECONDS):
        raise Unavailable("More batches arrive than can be stored; retry with exponential backoff")
    try:
        stored = iter(ingest_all(submissions))
    finally:
        _batch_lock.release()
    return [event if isinstance(event, ServiceError) else next(stored) for event in inputs]
