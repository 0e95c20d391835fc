"""Ingesting events."""

from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from uuid import UUID

from compliance.core import environments
from compliance.core.errors import ServiceError
from events.ingest.event_input import EventInput
from events.ingest.ingestion import Submission, ingest_all
from events.ingest.storage import ScoredEvent

PORTION_SECONDS = 0.1
"""How long a batch in a transaction goes on, and so keeps the locks of the agents it has stopped at."""


def ingest(*, tenant_id: UUID, event: EventInput, now: datetime) -> ScoredEvent:
    """Score and store one event, which is durable on return outside a transaction.

    A high-risk event locks the agent and runs `threshold.react()` in the same transaction. Raises
    `AgentNotFound`, and `AgentNotActive` for an agent that is not active or has no active certificate.
    """
    (outcome,) = ingest_all([Submission(tenant_id, event, now)])
    if not isinstance(outcome, ScoredEvent):
        raise outcome or ServiceError()
    return outcome


def ingest_batch(
    *, tenant_id: UUID, inputs: Sequence[EventInput | ServiceError], now: datetime
) -> list[ScoredEvent | ServiceError | None]:
    """Score and store events in their order; return each one's row or error. Errors in `inputs` stay.

    Inside a transaction it ends after PORTION_SECONDS; the events that are left, None, belong into the next.
    """
    submissions = [
        Submission(tenant_id, event, now) for event in inputs if not isinstance(event, ServiceError)
    ]
    until = monotonic() + PORTION_SECONDS if environments.in_transaction() else None
    stored = iter(ingest_all(submissions, until=until))
    return [event if isinstance(event, ServiceError) else next(stored) for event in inputs]
