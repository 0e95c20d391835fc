"""The endpoint of `POST /v1/events`, as both entrances serve it."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from compliance.api.endpoint import Deferred, Endpoint, EndpointRequest
from compliance.api.gate import Scope
from compliance.core.errors import Forbidden, ServiceError
from events.ingest.event_input import read_event
from events.ingest.ingestion import DeferredEvent, Submission, ingest_deferred, ingest_together
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent

SHOWN = ("id", "agent_id", "action_type", "risk_score", "risk_band", "occurred_at", "details")
"""The fields of an event as the API shows it."""


def shown(event: ScoredEvent | BehaviorEvent) -> dict[str, Any]:
    """Show the fields `SHOWN` of a stored event, as `BehaviorEventSerializer` describes them."""
    return {
        "id": event.id,
        "agent_id": event.agent_id,
        "action_type": event.action_type,
        "risk_score": event.risk_score,
        "risk_band": event.risk_band,
        "occurred_at": event.occurred_at,
        "details": event.details,
    }


class RecordEvent(Endpoint[Submission, ScoredEvent]):
    """`POST /v1/events`: events that arrive together share one insert and one commit."""

    method, path, allow = "POST", "/v1/events", "GET, POST, HEAD"
    scope, bucket, status = Scope.EVENTS_WRITE, "events", 201
    full = "More events arrive than can be stored; retry with exponential backoff"
    # Each group costs four round trips and some two milliseconds of processor time, whatever its size.
    largest_group, worth_a_group, longest_gathering = 200, 16, 0.010

    def read(self, request: EndpointRequest) -> Submission:
        if request.tenant_id is None:
            raise Forbidden()
        event = read_event(request.body, now=request.received_at)
        return Submission(request.tenant_id, event, request.received_at)

    def work(
        self, questions: Sequence[Submission]
    ) -> Sequence[ScoredEvent | ServiceError | Deferred[ScoredEvent]]:
        return [
            Deferred(partial(ingest_deferred, outcome)) if isinstance(outcome, DeferredEvent) else outcome
            for outcome in ingest_together(questions)
        ]

    def show(self, outcome: ScoredEvent) -> Mapping[str, Any]:
        return {"data": shown(outcome)}


RECORD_EVENT = RecordEvent()
