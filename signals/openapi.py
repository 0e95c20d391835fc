"""Texts, parameters and examples of signals in the OpenAPI description."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, PolymorphicProxySerializer

from signals.serializers import StreamSerializer
from signals.vocabulary import SUPPORTED_EVENTS, DeliveryMethod

_STREAM = "0199f2a4-6a00-7b00-8c00-5e5e5e5e5e5e"
_JTI = "5c8b9b1e-0f3b-5a56-9d39-2f0b4b9f1c11"
_BASE = "https://service.example"
_DELIVERY = {"method": DeliveryMethod.PUSH.value, "endpoint_url": "https://gateway.example.com/signals"}

STREAM_ID = OpenApiParameter("stream_id", OpenApiTypes.UUID, required=True)
OPTIONAL_STREAM_ID = OpenApiParameter("stream_id", OpenApiTypes.UUID)

CREATE_TEXT = (
    "Security Event Tokens (RFC 8417) of everything that ends authority of the tenant from now on, in the "
    "order of the audit log: pushed (RFC 8935) or polled (RFC 8936), at least once, a repetition with the "
    "same `jti`. Every subject of the tenant counts; subjects cannot be added or removed."
)
UPDATE_TEXT = (
    "`stream_id` and what changes. A `delivery` replaces the old one as a whole, `authorization_header` "
    "included. What waits goes the new way."
)
POLL_TEXT = (
    "Each token comes until it is named in `ack` or `setErrs`. Unless `returnImmediately`, the answer waits "
    "a few seconds for the first; ask again at once. Polls that find nothing and may not wait, since as many "
    "do as may, are 503 with `Retry-After`. A paused stream gives none."
)

_CONFIGURATION: dict[str, Any] = {
    "stream_id": _STREAM,
    "iss": _BASE,
    "aud": f"{_BASE}/v1/ssf/streams/{_STREAM}",
    "events_supported": list(SUPPORTED_EVENTS),
    "events_requested": list(SUPPORTED_EVENTS),
    "events_delivered": list(SUPPORTED_EVENTS),
    "delivery": _DELIVERY,
    "min_verification_interval": 5,
    "description": "Gateway in Frankfurt",
}
PUSH_STREAM = OpenApiExample(
    "Push",
    request_only=True,
    value={
        "delivery": {**_DELIVERY, "authorization_header": "Bearer 0f1e2d3c"},
        "events_requested": list(SUPPORTED_EVENTS),
        "description": "Gateway in Frankfurt",
    },
)
STREAM = OpenApiExample("A stream", _CONFIGURATION, response_only=True, status_codes=["200", "201"])
CHANGE = OpenApiExample(
    "Another endpoint", request_only=True, value={"stream_id": _STREAM, "delivery": _DELIVERY}
)
PAUSING = OpenApiExample(
    "Pause", request_only=True, value={"stream_id": _STREAM, "status": "paused", "reason": "Maintenance"}
)
STATUS = OpenApiExample(
    "Paused",
    {"stream_id": _STREAM, "status": "paused", "reason": "Maintenance"},
    response_only=True,
    status_codes=["200"],
)
VERIFICATION = OpenApiExample(
    "With a state", request_only=True, value={"stream_id": _STREAM, "state": "b3JkZXI"}
)
POLL = OpenApiExample(
    "Acknowledge and take",
    request_only=True,
    value={"maxEvents": 10, "returnImmediately": True, "ack": [_JTI]},
)
POLLED = OpenApiExample(
    "One token",
    {"sets": {_JTI: "eyJ0eXAiOiJzZWNldmVudCtqd3QiLCJhbGciOiJFUzI1NiJ9.e30.c2ln"}, "moreAvailable": False},
    response_only=True,
    status_codes=["200"],
)
TRANSMITTER = OpenApiExample(
    "The live environment's",
    {
        "spec_version": "1_0",
        "issuer": _BASE,
        "jwks_uri": f"{_BASE}/.well-known/jwks.json",
        "delivery_methods_supported": list(DeliveryMethod.values),
        "configuration_endpoint": f"{_BASE}/v1/ssf/streams",
        "status_endpoint": f"{_BASE}/v1/ssf/status",
        "verification_endpoint": f"{_BASE}/v1/ssf/verify",
        "authorization_schemes": [{"spec_urn": "urn:ietf:rfc:6750"}],
        "default_subjects": "ALL",
    },
    response_only=True,
    status_codes=["200"],
)
ONE_OR_ALL = PolymorphicProxySerializer(
    "SignalStreamOrAll", [StreamSerializer, StreamSerializer(many=True)], None, many=False
)
