"""`/v1/events`."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from agents.models import Agent
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.idempotency import in_portions
from compliance.api.pagination import (
    feed_response,
    is_oldest_first,
    newest_first,
    ok,
    read_choice,
    read_id,
    read_limit,
    read_position,
)
from compliance.api.rest.endpoints import respond
from compliance.api.rest.parsers import NDJSONParser, StrictJSONParser
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import IDEMPOTENCY_KEY, MOMENT, ORDER, enveloped
from compliance.api.rest.throttling import count_the_rest
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from compliance.core.clock import now
from compliance.core.errors import Invalid, ServiceError
from compliance.core.identifiers import first_id_at
from events import services
from events.endpoints import RECORD_EVENT, SHOWN, shown
from events.inbox import reviewing
from events.ingest.event_input import MAX_BATCH, EventInput, read_batch, read_or_refuse
from events.ingest.storage import ScoredEvent
from events.models import ActionType, BehaviorEvent, EventReview, ReviewVerdict, RiskBand
from events.risk.rolling import NOTHING
from events.serializers import (
    RECORD_BATCH_SCHEMA,
    RECORD_EVENT_SCHEMA,
    BatchResultSerializer,
    BehaviorEventSerializer,
    EventReviewSerializer,
    ExplainedEventSerializer,
    ReviewSerializer,
    shown_explained,
    shown_result,
)
from events.streaming.feed import events_from
from events.streaming.ocsf import SHOWN as OCSF_FIELDS, ocsf_of_event

FILTERS = [
    OpenApiParameter("agent_id", OpenApiTypes.UUID),
    OpenApiParameter("band", OpenApiTypes.STR, enum=RiskBand.values),
    OpenApiParameter("action_type", OpenApiTypes.STR, enum=ActionType.values),
]
FORM = OpenApiParameter(
    "format",
    OpenApiTypes.STR,
    enum=["plain", "ocsf"],
    description="`plain` by default; `ocsf`: `data` holds events of OCSF 1.8.0 instead.",
)
AFTER = OpenApiParameter(
    "after",
    MOMENT,
    description="Only with `order=asc`: a cursor, or an ISO 8601 date-time for what was received since.",
)

AN_AGENT = "0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f"
PAYMENT = {"tool": "place_order", "amount_usd": 250, "instrument": "BTC-USD", "venue": "kraken"}
EVENT_EXAMPLE = OpenApiExample(
    "A payment",
    request_only=True,
    value={"agentId": AN_AGENT, "actionType": "transaction_initiated", "details": PAYMENT},
)
BATCH_EXAMPLE = OpenApiExample(
    "Two reads",
    request_only=True,
    media_type="application/json",
    value={"events": [{"agentId": AN_AGENT, "actionType": kind} for kind in ("data_access", "api_call")]},
)
CONFIRMED = {"verdict": "confirmed", "note": "The customer did not order this transfer."}
REVIEW_EXAMPLES = [
    OpenApiExample("Part of an attack", request_only=True, value=CONFIRMED),
    OpenApiExample("Ordinary after all", request_only=True, value={"verdict": "dismissed"}),
]


class EventViewSet(ApiViewSet):
    """`/v1/events` but for batches."""

    schema_tag = "Events"

    def check_permissions(self, request: Request) -> None:
        self.bucket = "events" if self.action == "create" else "key"
        super().check_permissions(request)

    @operation(
        "recordEvent",
        "Record an agent's action and score its risk",
        Scope.EVENTS_WRITE,
        BehaviorEventSerializer,
        status=201,
        description="Three events of score 0.85 or higher within 15 minutes revoke the agent's certificate.",
        request={"application/json": RECORD_EVENT_SCHEMA},
        examples=[EVENT_EXAMPLE],
        repeats=True,
        e400="Invalid action_type",
        e404="Agent not found",
        e422="Agent is not active",
    )
    def create(self, request: ApiRequest) -> Response:
        return respond(RECORD_EVENT, request)

    @listing(
        "listEvents",
        "List events, newest first or as a feed",
        Scope.EVENTS_READ,
        BehaviorEventSerializer,
        parameters=[*FILTERS, FORM, AFTER, ORDER],
    )
    def list(self, request: ApiRequest) -> Response:
        params, tenant_id = request.query_params, request.auth.tenant_id
        is_ocsf = read_choice(params, "format", ("plain", "ocsf")) == "ocsf"
        show: Any = ocsf_of_event if is_ocsf else shown
        agent_id = read_id(params, "agent_id")
        events = BehaviorEvent.objects.for_tenant(tenant_id).only(*OCSF_FIELDS if is_ocsf else SHOWN)
        events = events.where(
            agent_id=agent_id,
            risk_band=read_choice(params, "band", RiskBand.values),
            action_type=read_choice(params, "action_type", ActionType.values),
        )
        # The index of an agent's events would have all those of another tenant's agent read in vain.
        if agent_id and not Agent.objects.for_tenant(tenant_id).filter(id=agent_id).exists():
            events = events.none()
        if is_oldest_first(params):
            after, limit = read_position(params), read_limit(params)
            start = NOTHING if after is None else after.id or first_id_at(after.at)
            feed = events_from(start, events, limit=limit, now=now())
            return feed_response(feed, [*map(show, feed.rows)], "received_at")
        if "after" in params:
            raise Invalid("after needs order=asc")
        return newest_first(
            events, request, lambda rows: [*map(show, rows)], field="occurred_at", heavy="details"
        )

    @operation(
        "getEvent",
        "Fetch an event and why it scored as it did",
        Scope.EVENTS_READ,
        ExplainedEventSerializer,
        e404="Event not found",
    )
    def retrieve(self, request: ApiRequest, event_id: str) -> Response:
        event = BehaviorEvent.objects.for_tenant(request.auth.tenant_id).find(event_id)
        event.review = EventReview.objects.that_counts(event.id)
        return ok(shown_explained(event))

    @operation(
        "reviewEvent",
        "Say what an event was: part of an attack, or ordinary after all",
        Scope.EVENTS_REVIEW,
        {
            200: OpenApiResponse(enveloped(EventReviewSerializer), "The verdict was already this one"),
            201: enveloped(EventReviewSerializer),
        },
        description=(
            "Any event can be reviewed: a missed attack scored low. A later verdict replaces an earlier one; "
            "each is kept and audited. Repeating the present verdict, with its note or none, answers 200. "
            "Confirming marks the places that the event names and that are not common: `marked`."
        ),
        request=ReviewSerializer,
        examples=REVIEW_EXAMPLES,
        repeats=True,
        e404="Event not found",
    )
    def review(self, request: ApiRequest, event_id: str) -> Response:
        given = validated(ReviewSerializer, request)
        found, is_new = reviewing.review(
            event_id=event_id,
            verdict=ReviewVerdict(given["verdict"]),
            note=given.get("note"),
            **caller_of(request),
        )
        return ok(EventReviewSerializer(found).data, status=201 if is_new else 200)


class EventLinesParser(NDJSONParser):
    member, most_lines = "events", MAX_BATCH


class EventBatchViewSet(ApiViewSet):
    """Many events in one request."""

    schema_tag = "Events"
    bucket = "events"
    parser_classes = (StrictJSONParser, EventLinesParser)

    @operation(
        "recordEvents",
        "Record up to 1,000 actions at once",
        Scope.EVENTS_WRITE,
        enveloped(BatchResultSerializer, many=True),
        description=(
            "Scored and stored in their order, each with its own result. As `application/x-ndjson`, each "
            "line holds one event. Each event counts as a request against the rate limit, each 4 KiB of the "
            "body as one at least. An event whose agent another request was changing has status 409: send it "
            "again."
        ),
        request={"application/json": RECORD_BATCH_SCHEMA, "application/x-ndjson": OpenApiTypes.STR},
        parameters=[IDEMPOTENCY_KEY],
        examples=[BATCH_EXAMPLE],
    )
    def create(self, request: ApiRequest) -> Response:
        items, moment = read_batch(request.data), now()
        inputs = [read_or_refuse(item, now=moment) for item in items]
        results: list[Any] = [None] * len(inputs)

        def portion(stored: list[Any]) -> Response | None:
            if not any(results):
                count_the_rest(request, "events", len(inputs))
            _store_some(request.auth.tenant_id, inputs, stored, results)
            return None if None in stored else ok(_all_results(request.auth.tenant_id, stored, results))

        return in_portions(request, portion)


def _store_some(
    tenant_id: UUID, inputs: Sequence[EventInput | ServiceError], stored: list[Any], results: list[Any]
) -> None:
    """Store a batch's next events; `stored` gets the id or the error of each, `results` what is shown."""
    stored += [None] * (len(inputs) - len(stored))
    left = [place for place, found in enumerate(stored) if found is None]
    outcomes = services.ingest_batch(tenant_id=tenant_id, inputs=[inputs[place] for place in left], now=now())
    for place, outcome in zip(left, outcomes, strict=True):
        if outcome is not None:
            results[place] = shown_result(outcome)
            stored[place] = outcome.id if isinstance(outcome, ScoredEvent) else results[place]


def _all_results(tenant_id: UUID, stored: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """Return the results; those of portions that another request did are read."""
    ids = [
        found for found, result in zip(stored, results, strict=True) if not result and isinstance(found, str)
    ]
    rows = {str(row.id): row for row in BehaviorEvent.objects.for_tenant(tenant_id).filter(id__in=ids)}
    return [
        result or (shown_result(rows[found]) if isinstance(found, str) else found)
        for found, result in zip(stored, results, strict=True)
    ]
