"""The OAuth endpoints in the OpenAPI description: errors, security schemes, examples."""

from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from delegation.oauth.exchange import ACCESS_TOKEN, GRANT_TYPE, ID_TOKEN, agent_type
from delegation.oauth.forms import MEDIA_TYPE
from delegation.oauth.serializers import OAUTH_STATUS_TEXT, OAuthErrorSerializer

FORM = MEDIA_TYPE
_CODES = {401: "invalid_client", 429: "temporarily_unavailable", 503: "temporarily_unavailable"}


class ClientScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """HTTP Basic with the API key's id and the key; a bearer header does as well."""

    target_class = "delegation.oauth.clients.ClientAuthentication"
    name = ["clientBasic", "clientBearer"]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {"type": "http", "scheme": "basic"},
            {"type": "http", "scheme": "bearer", "bearerFormat": "API key"},
        ]


def errors(*statuses: int) -> dict[int, OpenApiResponse]:
    """Documented errors of RFC 6749, for any request to these endpoints and for `statuses`."""
    found = {}
    for status in sorted({400, 401, 405, 413, 415, 429, 503, *statuses}):
        code, text = _CODES.get(status, "invalid_request"), OAUTH_STATUS_TEXT[status]
        example = OpenApiExample("error", value={"error": code, "error_description": text})
        found[status] = OpenApiResponse(OAuthErrorSerializer, text, examples=[example])
    return found


DPOP = OpenApiParameter(
    "DPoP",
    OpenApiTypes.STR,
    location=OpenApiParameter.HEADER,
    description="A proof for this endpoint (RFC 9449 §5): the token is bound to its key.",
)
EXCHANGE = OpenApiExample(
    "A person's ID token for an agent",
    request_only=True,
    media_type=FORM,
    value={
        "grant_type": GRANT_TYPE,
        "subject_token": "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJpc3MiOiJodHRwczovL….c2lnbmVk",
        "subject_token_type": ID_TOKEN,
        "actor_token": f"did:{settings.SERVICE_NAME}:live:019a9f5e-6f5a-7c43-9a53-0c4c1f3d2b11",
        "actor_token_type": agent_type(),
        "scope": "read_market_data",
        "resource": "https://api.example.com/",
    },
)
EXCHANGED = OpenApiExample(
    "Issued",
    response_only=True,
    status_codes=["200"],
    value={
        "access_token": "eyJhbGciOiJFUzI1NiIsImtpZCI6Ik5fd0x5….eyJpc3MiOiJodHRwczovL….QWx3YXlzIHNpZ25lZA",
        "issued_token_type": ACCESS_TOKEN,
        "token_type": "Bearer",
        "expires_in": 3600,
        "scope": "read_market_data",
    },
)
