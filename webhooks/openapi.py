"""Examples, texts and callbacks of webhooks in the OpenAPI description."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiCallback,
    OpenApiExample,
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers

from compliance.api.answers import service_header
from webhooks.models import DeliveryStatus
from webhooks.vocabulary import DELIVERABLE_EVENTS, DISABLED_EVENT, TEST_EVENT, EventName

_WEBHOOK = "0199f2a4-6a00-7b00-8c00-1a1a1a1a1a1a"
_EVENT = "0199f2a4-9d20-7f55-8a44-6f2f8f1f9c77"
_TIME = "2026-11-20T09:15:00.123456Z"
_REASON = {
    "name": "reported_unauthorized",
    "observed": "the agent tried an action outside its scope",
    "expected": "actions inside the scope",
    "weight": 0.1,
}
_FIELDS: dict[str, Any] = {
    "agent_id": "0199f2a4-7c1e-7d3a-9b1c-2f6f0f7f3b10",
    "certificate_id": "0199f2a4-8b10-7c11-a111-0d0d0d0d0d0d",
    "serial_number": "5f1c0a9e4b7d4c2f8e6a1b3c5d7e9f01",
    "webhook_id": _WEBHOOK,
    "event_id": _EVENT,
    "risk_score": 0.93,
    "incident_id": "0199f2a5-1200-7a00-8b00-3c3c3c3c3c3c",
    "reference": "INC-20261120-3C3C3C3C",
}


def _example(*fields: str, **own: Any) -> dict[str, Any]:
    return {name: _FIELDS[name] for name in fields} | own


_OWNER = {"name": "Kim Berg", "email": "kim.berg@example.com"}
_APPROVAL = {
    "approval_id": "0199f2a4-9e10-7c00-8d00-5e5e5e5e5e5e",
    **_example("agent_id", agent_name="trade-bot", action="pay"),
}
_REVIEW = {
    "review_id": "0199f2a4-9e10-7c00-8d00-6f6f6f6f6f6f",
    "reviewer": "kim.berg@example.com",
    "agents": 42,
    "due_at": "2026-12-20T12:00:00Z",
}
# An example of each event's `data`; that of certificate.revoked is from the interface specification.
EXAMPLE_DATA: dict[str, dict[str, Any]] = {
    EventName.CERTIFICATE_ISSUED: _example(
        "certificate_id", "agent_id", "serial_number", issued_at=_TIME, expires_at="2027-11-20T09:15:00Z"
    ),
    EventName.CERTIFICATE_REVOKED: _example(
        "serial_number", "agent_id", revocation_reason="Key compromised", revoked_at=_TIME
    ),
    EventName.CERTIFICATE_EXPIRED: _example(
        "certificate_id", "serial_number", "agent_id", expires_at="2026-11-20T09:15:00Z"
    ),
    EventName.CERTIFICATE_EXPIRING: _example(
        "certificate_id", "serial_number", "agent_id", expires_at="2026-11-27T09:15:00Z", days=7
    ),
    EventName.AGENT_DORMANT: _example(
        "agent_id", name="trade-bot", last_event_at="2026-10-20T09:15:00Z", days=30
    ),
    EventName.AGENT_HIGH_RISK: {
        **_example("agent_id", "risk_score", high_events=3, window_minutes=15),
        **_example("event_id", threshold_breached=True),
    },
    EventName.AGENT_CREATED: _example("agent_id", name="trade-bot", status="pending"),
    EventName.AGENT_SUSPENDED: _example("agent_id", reason="Under review", status="suspended", owner=_OWNER),
    EventName.AGENT_HALTED: _example(
        "agent_id", reason="3 high-risk events within 15 minutes", status="suspended", owner=_OWNER
    ),
    EventName.RISK_ALERT: {
        **_example("agent_id", "event_id", action_type="unauthorized_access_attempt"),
        **_example("risk_score", risk_band="high", reasons=[_REASON]),
    },
    EventName.AGENT_STRIKE: _example(
        *("agent_id", "event_id", "risk_score"),
        strikes=2,
        of=3,
        window_ends_at="2026-11-20T09:29:12Z",
        owner=_OWNER,
    ),
    EventName.INCIDENT_OPENED: {
        **_example("incident_id", "reference", "agent_id", cause="threshold", state="contained"),
        **_example(severity="high", detected_at=_TIME),
    },
    EventName.INCIDENT_DEADLINE: {
        **_example("incident_id", "reference", "agent_id", state="contained", clock="dora.initial"),
        **_example(stage="near", due_at="2026-11-21T09:15:00Z"),
    },
    EventName.APPROVAL_REQUESTED: _APPROVAL
    | _example(risk_score=0.62, risk_band="medium", expires_at="2026-11-20T09:25:00.123456Z"),
    EventName.APPROVAL_DECIDED: _APPROVAL
    | _example(status="approved", decided_by="person:0199f2a4-1100-7a00-8b00-4d4d4d4d4d4d")
    | _example(decided_at=_TIME, note="Agreed with the supplier"),
    EventName.ACCESS_REVIEW_OPENED: _REVIEW,
    EventName.ACCESS_REVIEW_OVERDUE: _REVIEW,
    TEST_EVENT: _example("webhook_id"),
    DISABLED_EVENT: {
        **_example("webhook_id", reason="failing", failed_deliveries=100),
        **_example(failing_since=_TIME, given_up=12),
    },
}


def example_envelope(event: str) -> dict[str, Any]:
    """Return a whole envelope of `event`."""
    return {"id": _EVENT, "event": event, "created_at": _TIME, "data": EXAMPLE_DATA[event]}


EVENT_FILTER = OpenApiParameter("event", OpenApiTypes.STR, enum=list(DELIVERABLE_EVENTS))
STATUS_FILTER = OpenApiParameter("status", OpenApiTypes.STR, enum=DeliveryStatus.values)

_SUBSCRIPTION = {
    "url": "https://hooks.example.com/agents",
    "events": ["certificate.revoked", "agent.high_risk"],
    "description": "Security operations",
}
CREATION = OpenApiExample("Revocations and risk", request_only=True, value=_SUBSCRIPTION)
CHANGE = OpenApiExample("Switch off", request_only=True, value={"active": False})
WITH_SECRET = OpenApiExample(
    "With its secret",
    response_only=True,
    status_codes=["200", "201"],
    value={
        "data": {
            "id": _WEBHOOK,
            **_SUBSCRIPTION,
            "format": "standard",
            "active": True,
            "secret_hint": "b3M=",
            **dict.fromkeys(("previous_secret_until", "disabled_at")),
            **dict.fromkeys(("created_at", "updated_at"), "2026-11-20T09:00:00.000000Z"),
            "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDmyDEM5hrb3M=",
        }
    },
)
DELIVERY = {
    "id": "0199f2a4-a100-7e00-8f00-2b2b2b2b2b2b",
    "webhook_id": _WEBHOOK,
    "event_id": _EVENT,
    "event": "certificate.revoked",
    "status": "succeeded",
    "trigger": "event",
    "attempt_count": 1,
    "max_attempts": 4,
    "next_attempt_at": None,
    "created_at": _TIME,
    "completed_at": "2026-11-20T09:15:00.201532Z",
    "attempts": [
        {
            "number": 1,
            "url": "https://hooks.example.com/agents",
            "started_at": "2026-11-20T09:15:00.140027Z",
            "duration_ms": 61,
            "response_status": 200,
            "response_body": "ok",
            "error": None,
        }
    ],
}
_DELIVERIES = {"data": [DELIVERY], "has_next_page": False, "next_cursor": None}
HISTORY = OpenApiExample("One delivery", _DELIVERIES, response_only=True, status_codes=["200"])

CREATE_TEXT = (
    "The answer carries the secret that signs this webhook's deliveries; it is not shown again. Deliveries "
    "are POSTed as described under Callbacks, and retried 1, 10 and 100 seconds after an answer other than "
    "2xx, an error, or 30 seconds without a complete answer. They may arrive more than once, with the same "
    "envelope `id`."
)
UPDATE_TEXT = (
    "Switching it off cancels pending deliveries; later events are not kept for it. `active: true` also "
    "switches on a webhook that the service disabled."
)
TEST_TEXT = "Queues one `webhook.test` event to this webhook alone. Watch it in the delivery history."
REDELIVER_TEXT = "Sends the same event as a new delivery: the same `id`, in the webhook's format of then."
ROTATE_TEXT = (
    "Every attempt from now on, retries included, is signed with the new secret, which is not shown again. "
    "For `overlap_seconds` the old one signs too: in the header whose name ends in `-Previous`, and as the "
    "second signature in `webhook-signature`."
)
RECOVER_TEXT = (
    "Queues each event again whose last delivery to this webhook, made since then, has failed; the oldest "
    "first, each with its `id`, in the webhook's format of then. For after an outage of the receiver."
)
LEAKED = OpenApiExample("The old one has leaked", request_only=True, value={"overlap_seconds": 0})
_SINCE = {"since": "2026-11-20T09:00:00Z"}
_RECOVERED = {"data": {"webhook_id": _WEBHOOK, **_SINCE, "redelivered": 17}}
RECOVERY = OpenApiExample("An outage", _SINCE, request_only=True)
RECOVERED = OpenApiExample("On their way", _RECOVERED, response_only=True, status_codes=["202"])

_SIGNATURE = service_header("Signature")
HEADERS = [
    OpenApiParameter(
        name, OpenApiTypes.STR, OpenApiParameter.HEADER, required=required, description=description
    )
    for name, required, description in (
        (_SIGNATURE, True, "`sha256=` and the hex HMAC-SHA-256 of the raw body, keyed with the secret."),
        (f"{_SIGNATURE}-Previous", False, "The same with the previous secret, while that is valid."),
        ("webhook-id", True, "The envelope's `id`."),
        ("webhook-timestamp", True, "When this attempt was signed, in Unix seconds."),
        ("webhook-signature", True, "Standard Webhooks 1.0: `v1,<base64>`, several separated by spaces."),
    )
]

ENVELOPE = inline_serializer(
    "Envelope",
    {
        "id": serializers.UUIDField(help_text="The event; the same in every retry and redelivery."),
        "event": serializers.ChoiceField([(name, name) for name in DELIVERABLE_EVENTS]),
        "created_at": serializers.DateTimeField(),
        "data": serializers.DictField(
            help_text="Depends on `event`; see the examples. `would_have_stopped`: true of the event that "
            "would have stopped an agent which is only observed. `scope_mismatch`, in the alert about a new "
            "agent's names: those `expected` and those `seen`."
        ),
    },
)
DELIVERIES = OpenApiCallback(
    "delivery",
    "{$request.body#/url}",
    extend_schema(
        summary="An event's delivery",
        description="In the format `standard`; the other formats are made of the same envelope.",
        parameters=HEADERS,
        request=ENVELOPE,
        examples=[
            OpenApiExample(event, request_only=True, value=example_envelope(event))
            for event in DELIVERABLE_EVENTS
        ],
        responses={200: OpenApiResponse(description="Any 2xx: received. Everything else is tried again.")},
    ),
)
