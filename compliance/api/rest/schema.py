"""Building blocks of the OpenAPI description: the envelope, the errors, the key's security scheme."""

from functools import cache
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import build_parameter_type
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, inline_serializer
from rest_framework import serializers

from compliance.api.rest.fields import ClosedSerializer
from compliance.core.environments import Environment
from compliance.core.errors import Busy

_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]{1,60})?"
_ZONE = r"([Zz]|[+ -]([01][0-9]|2[0-3]):?[0-5][0-9])"
_MOMENT = f"{_DATE}([Tt ]{_TIME}{_ZONE}?)?"
MOMENT: dict[str, Any] = {"type": "string", "pattern": f"^{_MOMENT}$"}
"""An ISO 8601 date-time or date, as `pagination.Cursor` reads it."""

BEFORE = OpenApiParameter(
    "before",
    {"type": "string", "pattern": f"^({_MOMENT})?$"},
    description="Cursor: an ISO 8601 date-time, or `next_cursor` of the page before, passed back unchanged.",
)
ORDER = OpenApiParameter(
    "order",
    OpenApiTypes.STR,
    enum=["asc", "desc"],
    description="`asc`: a feed that skips nothing. Pass `next_cursor` as `after`, also after an empty page.",
)
LIMIT = OpenApiParameter(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": 999_999_999},
    description=(
        "Rows on a page at most; 50 when omitted, and 100 where more are asked for. A page ends at 4 MB of "
        "JSON, too."
    ),
)
EXACT_LIMIT = OpenApiParameter(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": 100},
    description="Rows on a page at most; 50 when omitted. A page ends at 4 MB of JSON, too.",
)
ENVIRONMENT = OpenApiParameter("environment", OpenApiTypes.STR, enum=[item.value for item in Environment])
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    # Printable ASCII; HTTP takes away the blanks at its ends.
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    location=OpenApiParameter.HEADER,
    description=(
        "The same value under the same API key gives the same answer for 24 hours; with a different body it "
        "is a 409. Each API key has values of its own."
    ),
)

STATUS_TEXT = {
    400: "Missing fields, invalid JSON or failed validation",
    401: "Missing, invalid, expired or revoked API key",
    403: "The key lacks the scope of this operation",
    404: "Absent, or another tenant's",
    405: "The path has no such method",
    406: "No acceptable representation",
    409: "In conflict with what is already there",
    410: "Past its retention",
    413: "The body is larger than 1 MiB",
    415: "The body is not application/json",
    422: "Sound, but impossible in the present state",
    425: "Still being generated; poll again after Retry-After",
    429: "Rate limit exceeded",
    500: "Unexpected server error",
    503: "A dependency is unavailable; retry with exponential backoff",
}


class ErrorSerializer(serializers.Serializer[Any]):
    """The body of every error."""

    error = serializers.CharField(help_text="For people; clients branch on the status.")


def errors(*statuses: int, **messages: str) -> dict[int, OpenApiResponse]:
    """Documented error answers; `e404="Agent not found"` gives a status its own example."""
    own = {int(name[1:]): text for name, text in messages.items()}
    found: dict[int, OpenApiResponse] = {}
    for status in sorted({*statuses, *own}):
        example = OpenApiExample("error", value={"error": own.get(status, STATUS_TEXT[status])})
        found[status] = OpenApiResponse(ErrorSerializer, STATUS_TEXT[status], examples=[example])
    return found


# What any call with a key can meet, and what any public call can.
KEYED = (400, 401, 403, 405, 413, 415, 429, 503)
PUBLIC = (400, 405, 413, 415, 429, 503)


@cache
def enveloped(serializer: type[serializers.Serializer[Any]], *, many: bool = False) -> Any:
    """The schema of `{"data": <serializer>}`, or of a list in `data`."""
    name = serializer.__name__.removesuffix("Serializer")
    return inline_serializer(f"{name}{'List' if many else ''}Envelope", {"data": serializer(many=many)})


@cache
def paged(serializer: type[serializers.Serializer[Any]], *, always_tells: bool = True) -> Any:
    """The schema of a page: `{"data": […], "has_next_page": …, "next_cursor": …}`.

    Unless it `always_tells`, `has_next_page` is there only where the list is read oldest first.
    """
    fields: dict[str, Any] = {
        "data": serializer(many=True),
        "has_next_page": serializers.BooleanField(required=always_tells),
        "next_cursor": serializers.CharField(allow_null=True),
    }
    return inline_serializer(f"{serializer.__name__.removesuffix('Serializer')}Page", fields)


class ServiceAutoSchema(AutoSchema):
    """Tags an operation by its view's `schema_tag`; lists are enveloped, never bare arrays."""

    def get_tags(self) -> list[str]:
        return [getattr(self.view, "schema_tag", None) or super().get_tags()[0]]

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if isinstance(serializer, ClosedSerializer):
            schema |= serializer.bounds
        if required := getattr(serializer, "required_in_changes", ()):
            schema["required"] = list(required)
        return schema

    def _resolve_path_parameters(self, variables: list[str]) -> list[dict[str, Any]]:
        """What a path names is a UUID where an operation declares nothing else."""
        uuid = {"type": "string", "format": "uuid"}
        return [build_parameter_type(name=name, schema=uuid, location="path") for name in variables]

    def _get_request_body(self, direction: Any = "request") -> Any:
        """Require a body, too, where the schema is written by hand or the body must name a field."""
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        given: Any = self.get_request_serializer() if body else None
        if isinstance(given, dict) or "minProperties" in getattr(given, "bounds", ()):
            body["required"] = True
        return body

    def _get_response_bodies(self, direction: Any = "response") -> Any:
        """Add what every write may answer that waits for a lock."""
        found = super()._get_response_bodies(direction)
        if self.method != "GET" and hasattr(self.view, "required_scopes") and "409" not in found:
            busy = errors(e409=Busy.message)[409]
            found["409"] = self._get_response_for_code(busy, "409", direction=direction)  # type: ignore[no-untyped-call]
        return found

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """`Authorization: Bearer <API key>`."""

    target_class = "tenancy.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "API key"}
