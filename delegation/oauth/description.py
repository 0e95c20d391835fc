"""The OAuth endpoints in the OpenAPI description: forms, answers, errors, security schemes, examples."""

from functools import partial
from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from compliance.api.rest.schema import STATUS_TEXT
from delegation.oauth.agent_clients import ASSERTION_TYPE, CLIENT_CREDENTIALS, JWT_BEARER
from delegation.oauth.errors import OAuthErrorCode
from delegation.oauth.exchange import ACCESS_TOKEN, GRANT_TYPE, ID_TOKEN, agent_type
from delegation.oauth.forms import MEDIA_TYPE

_parameter = partial(serializers.CharField, required=False)


class _Names(serializers.ListField):
    child = serializers.CharField()


class TokenRequestSerializer(serializers.Serializer[Any]):
    """RFC 8693 §2.1, RFC 6749 §4.4, RFC 7523. `client_*` where the client authenticates in the body."""

    grant_type = serializers.ChoiceField(choices=[GRANT_TYPE, CLIENT_CREDENTIALS, JWT_BEARER])
    subject_token = _parameter(help_text="On whose behalf: an ID token, ID-JAG or delegation token.")
    subject_token_type = _parameter(help_text="`urn:ietf:params:oauth:token-type:id_token` …")
    actor_token = _parameter(help_text="The agent that acts: its DID or id, or its token.")
    actor_token_type = _parameter(help_text=f"`{agent_type()}` for a DID or id.")
    assertion = _parameter(help_text="An ID-JAG, for `jwt-bearer`.")
    scope = _parameter(help_text="Space-delimited actions.")
    audience = _parameter(help_text="For whom the token is.")
    resource = _parameter(help_text="The same as an absolute URI (RFC 8707).")
    requested_token_type = _parameter(help_text="`urn:ietf:params:oauth:token-type:access_token` or `…:jwt`.")
    dpop_jkt = _parameter(help_text="Thumbprint of the key that the token is bound to, if not the proof's.")
    client_id = _parameter(help_text="The API key's id.")
    client_secret = _parameter(help_text="The API key.")
    client_assertion_type = _parameter(help_text=f"`{ASSERTION_TYPE}`")
    client_assertion = _parameter(help_text="An agent's JWT (RFC 7523).")


class TokenResponseSerializer(serializers.Serializer[Any]):
    """RFC 8693 §2.2.1."""

    access_token = serializers.CharField(help_text="The delegation token; kept nowhere.")
    issued_token_type = serializers.CharField(help_text="As requested; an access token by default.")
    token_type = serializers.ChoiceField(choices=["Bearer", "DPoP"])
    expires_in = serializers.IntegerField(help_text="Seconds.")
    scope = serializers.CharField(allow_blank=True)


class OAuthErrorSerializer(serializers.Serializer[Any]):
    """RFC 6749 §5.2."""

    error = serializers.ChoiceField(choices=[code.value for code in OAuthErrorCode])
    error_description = serializers.CharField(help_text="For people; begins with the reason's name.")


class MetadataSerializer(serializers.Serializer[Any]):
    """RFC 8414 §2."""

    issuer = serializers.CharField()
    token_endpoint = serializers.CharField()
    introspection_endpoint = serializers.CharField()
    revocation_endpoint = serializers.CharField()
    jwks_uri = serializers.CharField()
    response_types_supported = _Names()
    grant_types_supported = _Names()
    authorization_grant_profiles_supported = _Names()
    token_endpoint_auth_methods_supported = _Names()
    token_endpoint_auth_signing_alg_values_supported = _Names()
    dpop_signing_alg_values_supported = _Names()
    introspection_endpoint_auth_methods_supported = _Names()
    revocation_endpoint_auth_methods_supported = _Names()
    actor_token_types_supported = _Names()


OAUTH_STATUS_TEXT = {
    **STATUS_TEXT,
    400: "The request is malformed, or what it presents is refused; `error` says how",
    401: "The client did not authenticate",
    413: "The body is too large",
    415: "The body is not application/x-www-form-urlencoded",
}
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


class AgentScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """An agent's assertion by a key of its own, in the form."""

    target_class = "delegation.oauth.agent_clients.AgentAuthentication"
    name = "agentAssertion"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        flow = {"tokenUrl": "/oauth/token", "scopes": {}}
        return {"type": "oauth2", "description": "private_key_jwt", "flows": {"clientCredentials": flow}}


def errors() -> dict[int, OpenApiResponse]:
    """Documented errors of RFC 6749, for any request to these endpoints."""
    found = {}
    for status in (400, 401, 405, 413, 415, 429, 503):
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
    media_type=MEDIA_TYPE,
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
