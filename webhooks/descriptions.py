"""What the OpenAPI description says of webhooks beyond their serializers."""

from typing import Any

from django.conf import settings
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

from webhooks.models import DeliveryStatus
from webhooks.payloads import DATA, example_envelope
from webhooks.signature import header_name
from webhooks.vocabulary import DELIVERABLE_EVENTS

WEBHOOK_ID = OpenApiParameter("webhook_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)
DELIVERY_ID = OpenApiParameter("delivery_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)
EVENT_FILTER = OpenApiParameter("event", OpenApiTypes.STR, enum=list(DELIVERABLE_EVENTS))
STATUS_FILTER = OpenApiParameter("status", OpenApiTypes.STR, enum=DeliveryStatus.values)

CREATION = OpenApiExample(
    "Revocations and risk",
    request_only=True,
    value={
        "url": "https://hooks.example.com/agents",
        "events": ["certificate.revoked", "agent.high_risk"],
        "description": "Security operations",
    },
)
CHANGE = OpenApiExample("Switch off", request_only=True, value={"active": False})
WEBHOOK: dict[str, Any] = {
    "id": "0199f2a4-6a00-7b00-8c00-1a1a1a1a1a1a",
    "url": "https://hooks.example.com/agents",
    "events": ["certificate.revoked", "agent.high_risk"],
    "active": True,
    "description": "Security operations",
    "secret_hint": "b3M=",
    "previous_secret_until": None,
    "disabled_at": None,
    "created_at": "2026-11-20T09:00:00.000000Z",
    "updated_at": "2026-11-20T09:00:00.000000Z",
}
WITH_SECRET = OpenApiExample(
    "With its secret",
    response_only=True,
    status_codes=["200", "201"],
    value={"data": {**WEBHOOK, "secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDmyDEM5hrb3M="}},
)
DELIVERY = {
    "id": "0199f2a4-a100-7e00-8f00-2b2b2b2b2b2b",
    "webhook_id": WEBHOOK["id"],
    "event_id": "0199f2a4-9d20-7f55-8a44-6f2f8f1f9c77",
    "event": "certificate.revoked",
    "status": "succeeded",
    "trigger": "event",
    "attempt_count": 1,
    "max_attempts": 4,
    "next_attempt_at": None,
    "created_at": "2026-11-20T09:15:00.123456Z",
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
HISTORY = OpenApiExample(
    "One delivery",
    response_only=True,
    status_codes=["200"],
    value={"data": [DELIVERY], "has_next_page": False, "next_cursor": None},
)

CREATE_TEXT = (
    "The answer carries the secret that signs this webhook's deliveries; it is not shown again. "
    "Deliveries are POSTed as described under Callbacks, retried 1, 10 and 100 seconds after an answer "
    "other than 2xx, an error or 30 seconds without a complete answer, and may arrive more than once: "
    "the envelope's `id` stays the same."
)
UPDATE_TEXT = (
    "Switching it off cancels the deliveries that wait; events until it is on again are not kept for it. "
    "One that the service disabled is switched on again by `active: true`."
)
TEST_TEXT = "Queues one `webhook.test` event to this webhook alone. Watch it in the delivery history."
REDELIVER_TEXT = "Sends the same event, with the same id and the same bytes, as a new delivery."
ROTATE_TEXT = (
    "Every attempt from now on is signed with the new secret, retries of earlier events included. "
    "The answer carries it; it is not shown again. For `overlap_seconds` the old one signs beside it: in the "
    "header whose name ends in `-Previous`, and as the second signature in `webhook-signature`."
)
RECOVER_TEXT = (
    "Queues each event once more whose last delivery to this webhook, made since then, has failed; the "
    "oldest first, with the same ids and bytes. For after an outage of the receiver."
)
LEAKED = OpenApiExample("The old one has leaked", request_only=True, value={"overlap_seconds": 0})
RECOVERY = OpenApiExample("An outage", request_only=True, value={"since": "2026-11-20T09:00:00Z"})
RECOVERED = OpenApiExample(
    "On their way",
    response_only=True,
    status_codes=["202"],
    value={"data": {"webhook_id": WEBHOOK["id"], "since": "2026-11-20T09:00:00Z", "redelivered": 17}},
)

SIGNATURE = OpenApiParameter(
    header_name(settings.SERVICE_NAME),
    OpenApiTypes.STR,
    location=OpenApiParameter.HEADER,
    required=True,
    description="`sha256=` and the lowercase hex HMAC-SHA-256 of the raw body, keyed with the secret.",
)

PREVIOUS_SIGNATURE = OpenApiParameter(
    f"{header_name(settings.SERVICE_NAME)}-Previous",
    OpenApiTypes.STR,
    location=OpenApiParameter.HEADER,
    description="The same with the secret before, while a rotated one is still valid.",
)
STANDARD_HEADERS = [
    OpenApiParameter(
        name, OpenApiTypes.STR, location=OpenApiParameter.HEADER, required=True, description=description
    )
    for name, description in (
        ("webhook-id", "The envelope's `id`."),
        ("webhook-timestamp", "When this attempt was signed, in Unix seconds."),
        ("webhook-signature", "Standard Webhooks 1.0: `v1,<base64>`, several set apart by spaces."),
    )
]

ENVELOPE = inline_serializer(
    "Envelope",
    {
        "id": serializers.UUIDField(help_text="The event; the same in every retry and redelivery."),
        "event": serializers.ChoiceField([(name, name) for name in DELIVERABLE_EVENTS]),
        "created_at": serializers.DateTimeField(),
        "data": serializers.DictField(help_text="Depends on `event`; see the examples."),
    },
)
DELIVERIES = OpenApiCallback(
    "delivery",
    "{$request.body#/url}",
    extend_schema(
        summary="An event's delivery",
        parameters=[SIGNATURE, PREVIOUS_SIGNATURE, *STANDARD_HEADERS],
        request=ENVELOPE,
        examples=[
            OpenApiExample(str(event), request_only=True, value=example_envelope(event)) for event in DATA
        ],
        responses={200: OpenApiResponse(description="Any 2xx: received. Everything else is tried again.")},
    ),
)
