"""`/.well-known/oauth-authorization-server` (RFC 8414)."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.rest.schema import PUBLIC, errors
from compliance.api.rest.views import PublicViewSet
from delegation.jose.holder_keys import ALGORITHMS
from delegation.lifecycle import JWKS_MAX_AGE
from delegation.oauth import clients, possession, serializers
from delegation.oauth.exchange import DELEGATION_TYPES, GRANT_TYPE, agent_type


class MetadataViewSet(PublicViewSet):
    schema_tag = "OAuth"

    @extend_schema(
        operation_id="getAuthorizationServerMetadata",
        summary="What this authorization server offers",
        description="Authorization server metadata (RFC 8414), not enveloped; both environments share it.",
        auth=[],
        responses={200: serializers.MetadataSerializer, **errors(*PUBLIC)},
    )
    def retrieve(self, request: Request) -> Response:
        return _answer()

    @extend_schema(exclude=True)
    def of_path(self, request: Request, path: str) -> Response:
        """RFC 8414 §3.1: the path of the issuer stands behind the well-known name."""
        if f"/{path}" != urlsplit(settings.TOKEN_ISSUER).path:
            raise Http404
        return _answer()


def _answer() -> Response:
    max_age = int(JWKS_MAX_AGE.total_seconds())
    return Response(document(), headers={"Cache-Control": f"public, max-age={max_age}"})


def document() -> dict[str, Any]:
    """The metadata; there is no authorization endpoint, so no response type."""
    methods = list(clients.METHODS)
    return {
        "issuer": settings.TOKEN_ISSUER,
        "token_endpoint": f"{settings.BASE_URL}{possession.TOKEN_PATH}",
        "introspection_endpoint": f"{settings.BASE_URL}/oauth/introspect",
        "revocation_endpoint": f"{settings.BASE_URL}/oauth/revoke",
        "jwks_uri": f"{settings.BASE_URL}/.well-known/jwks.json",
        "response_types_supported": [],
        "grant_types_supported": [GRANT_TYPE],
        "token_endpoint_auth_methods_supported": methods,
        "dpop_signing_alg_values_supported": list(ALGORITHMS),
        "introspection_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        # No standard names this member; RFC 8414 §2 permits others. Clients learn the agents' type from it.
        "actor_token_types_supported": [agent_type(), *DELEGATION_TYPES],
    }
