"""Texts, headers and examples of the gateway's endpoints for the API description."""

from typing import Any, Final

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from compliance.api.answers import service_header
from gateway.deciding.identity import NAMES
from gateway.deciding.refusals import DECISION, DENY
from gateway.deciding.requests import ACTION, KEY, ROUTE, SERIAL


class GatewayScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The gateway's API key, in its own header or in `Authorization`."""

    target_class = "gateway.views.GatewayAuthentication"
    name = ["gatewayKey", "gatewayBearer"]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, str]]:
        return [
            {"type": "apiKey", "in": "header", "name": service_header(KEY)},
            {"type": "http", "scheme": "bearer", "bearerFormat": "API key"},
        ]


def _header(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, location=OpenApiParameter.HEADER, description=description)


HEADERS: Final = [
    _header(service_header(ROUTE), "The name of a route; without one, its defaults count."),
    _header(service_header(ACTION), "What the request would do, unless the route says it."),
    _header(service_header(SERIAL), "The certificate's serial number, from the client."),
    _header("DPoP", "The client's proof (RFC 9449), beside `Authorization: DPoP <token>`."),
    _header("Signature-Input", "With `Signature` and `Signature-Agent`: the client's signature (RFC 9421)."),
    _header("X-Forwarded-Method", "With the next three: the client's request, which a proof must fit."),
    _header("X-Forwarded-Proto", "`http` or `https`."),
    _header("X-Forwarded-Host", "Host and port."),
    _header("X-Forwarded-Uri", "Path and query."),
]
AUTHORIZE_TEXT: Final = (
    "For nginx `auth_request`, Traefik ForwardAuth and, under `/v1/gateway/authorize/<path>` with any "
    "method, Envoy ext_authz. The client's credential is a token in `Authorization` (`Bearer` or `DPoP`), a "
    "signature of its request by a key of the agent's (Web Bot Auth) or, where the route takes one, a "
    "certificate's serial number, which proves nothing. 200 answers with the "
    "identity in "
    f"headers ({', '.join(f'`{service_header(name)}`' for name in NAMES)}). A refusal of the client has "
    f"`{service_header(DECISION)}: {DENY}`; an answer without that header is the gateway's own fault or the "
    "service's, and nothing may pass on it either. An action outside the certificate's scope is recorded as "
    "an event of the agent."
)
_AGENT: Final = "01a0b2c4-7b1e-7c31-8d55-0d2f5a1c9e77"
PASSAGE: Final = OpenApiExample(
    "passage",
    value={
        "data": {
            "route": "orders",
            "action": "place_order",
            "credential": "dpop",
            "agent_id": _AGENT,
            "did": f"did:{settings.SERVICE_NAME}:live:{_AGENT}",
            "tenant_id": "01a0b2c4-0000-7000-8000-000000000001",
            "principal": "trading-agent",
            "chain": [
                {"sub": "alice@example.com", "type": "human"},
                {"sub": "trading-agent", "type": "agent"},
            ],
            "scope": ["place_order"],
            "risk_band": "low",
            "certificate_serial": "4f3a9c1d2b8e7f60514233445566778899aabbcc",
            "environment": "live",
            "assurance": "verified",
        }
    },
    response_only=True,
    status_codes=["200"],
)
_FIELDS: Final = {
    "name": "orders",
    "credentials": ["dpop"],
    "action": "place_order",
    "audience": "https://api.example.com",
    "highest_band": "low",
    "root": "verified",
    "agents": "own",
    "nonce_required": False,
    "uncertified_agents": False,
}
NEW_ROUTE: Final = OpenApiExample("new route", value=_FIELDS, request_only=True)
A_ROUTE: Final = OpenApiExample(
    "route",
    value={
        "data": {
            "id": "01a0b2c4-0000-7000-8000-000000000002",
            **_FIELDS,
            "created_at": "2026-01-02T03:04:05Z",
            "updated_at": "2026-01-02T03:04:05Z",
        }
    },
    response_only=True,
    status_codes=["200", "201"],
)
CHANGE: Final = OpenApiExample("change", value={"highest_band": "medium"}, request_only=True)
