"""The endpoints of `/v1/events`, as both entrances serve them."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError

from compliance.api.endpoint import Deferred, EndpointRequest, ReadEndpoint, ThreadEndpoint
from compliance.api.rest.permissions import Scope
from compliance.api.rest.throttling import EventsThrottle, KeyThrottle
from compliance.core.clock import now
from compliance.core.errors import Forbidden, ServiceError
from compliance.stores.async_postgres import Query
from events.ingest import standing
from events.ingest.event_input import read_event
from events.ingest.ingestion import DeferredEvent, Submission, ingest_deferred, ingest_together
from events.ingest.storage import ScoredEvent
from events.listing.pages import EventPage, EventQuery, page_from, read_query, statement
from events.risk import state_cache
from events.serializers import shown

log = logging.getLogger(__name__)

ALLOW = "GET, POST, HEAD"
NOBODY = UUID(int=0)
NO_AGENT = str(NOBODY)


class RecordEvent(ThreadEndpoint[Submission, ScoredEvent]):
    """`POST /v1/events`: events that arrive together share one insert and one commit."""

    method, path, allow = "POST", "/v1/events", ALLOW
    scope, bucket, status = Scope.EVENTS_WRITE, EventsThrottle.bucket, 201
    full = "More events arrive than can be stored; retry with exponential backoff"
    # Each group costs four round trips and some two milliseconds of processor time, whatever its size.
    largest_group, worth_a_group, longest_gathering = 200, 16, 0.010

    def read(self, request: EndpointRequest) -> Submission:
        return Submission(
            _tenant_of(request), read_event(request.body, now=request.received_at), request.received_at
        )

    def work(
        self, questions: Sequence[Submission]
    ) -> Sequence[ScoredEvent | ServiceError | Deferred[ScoredEvent]]:
        return [
            Deferred(partial(ingest_deferred, outcome)) if isinstance(outcome, DeferredEvent) else outcome
            for outcome in ingest_together(questions)
        ]

    def show(self, outcome: ScoredEvent) -> Mapping[str, Any]:
        return {"data": shown(outcome)}

    def warm(self) -> None:
        """Look for an agent that does not exist, as a group begins."""
        moment = now()
        try:
            standing.of_agents([(NOBODY, NO_AGENT)], now=moment)
        except (DatabaseError, InterfaceError) as error:
            log.info("database not reached at the start: %s", type(error).__name__)
        state_cache.load([NO_AGENT])


class ListEvents(ReadEndpoint[EventQuery, EventPage]):
    """`GET /v1/events`: each page is read by itself, over connections that tenants share."""

    method, path, allow = "GET", "/v1/events", ALLOW
    scope, bucket = Scope.EVENTS_READ, KeyThrottle.bucket
    largest_group, longest_queue = 1, 200

    def read(self, request: EndpointRequest) -> EventQuery:
        return read_query(request.query, tenant_id=_tenant_of(request))

    def query(self, questions: Sequence[EventQuery]) -> Query:
        (asked,) = questions
        return statement(asked)

    def outcomes(self, questions: Sequence[EventQuery], rows: Sequence[Sequence[Any]]) -> Sequence[EventPage]:
        (asked,) = questions
        return [page_from(rows, limit=asked.limit)]

    def show(self, outcome: EventPage) -> Mapping[str, Any]:
        has_next = outcome.next_cursor is not None
        return {"data": outcome.rows, "has_next_page": has_next, "next_cursor": outcome.next_cursor}


def _tenant_of(request: EndpointRequest) -> UUID:
    if request.tenant_id is None:
        raise Forbidden()
    return request.tenant_id


RECORD_EVENT = RecordEvent()
LIST_EVENTS = ListEvents()
