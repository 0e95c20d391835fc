"""`/oauth/token` (RFC 8693), `introspect` (RFC 7662), `revoke` (RFC 7009) and the metadata (RFC 8414)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from auditlog.vocabulary import Actor
from compliance.api.gate import Scope
from compliance.api.rest import schema
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.views import ApiViewSet, PublicViewSet
from compliance.core import environments
from compliance.core.clock import now
from delegation import examples, proofs, services
from delegation.errors import IssuedByAnother
from delegation.jose.holder_keys import ALGORITHMS
from delegation.lifecycle import JWKS_MAX_AGE
from delegation.oauth import agent_clients, clients, description, errors, exchange, forms
from delegation.oauth.agent_clients import AgentClient
from delegation.oauth.errors import UnauthorizedClient
from delegation.oauth.exchange import ACCESS_TOKEN, DELEGATION_TYPES, GRANT_TYPE, agent_type
from delegation.serializers import IntrospectionSerializer, shown_introspection
from tenancy import keys

TOKEN_PATH = "/oauth/token"
TOKEN_FORM = inline_serializer(
    "PresentedToken",
    {
        "token": serializers.CharField(),
        "token_type_hint": serializers.CharField(required=False, help_text="Ignored."),
    },
)


class OAuthViewSet(ApiViewSet):
    """The OAuth endpoints for clients, whose input is a form and whose refusal an `OAuthError`.

    A request runs in the environment of the client's key, whether a header or the body presents the key.
    """

    schema_tag = "OAuth"
    authentication_classes: Sequence[type[BaseAuthentication]] = (clients.ClientAuthentication,)
    required_scopes: ClassVar = {
        "introspect": Scope.TOKENS_INTROSPECT,
        "revoke": Scope.DELEGATIONS_REVOKE,
    }

    presented_key = staticmethod(clients.key_of)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        named = keys.environment_of(clients.key_of(request) or "")
        with environments.use(named or environments.current()):
            return super().dispatch(request, *args, **kwargs)

    def get_exception_handler(self) -> Callable[..., Any]:
        return errors.handle

    @extend_schema(
        operation_id="introspectToken",
        summary="Whether a token stands now (RFC 7662)",
        description=(
            "`active` only if the token is authentic and unexpired, neither it nor a token that it came of "
            "is revoked, and every agent behind it is neither suspended nor retired and holds the "
            "certificate under which it issued. All other tokens, of the other environment too, answer "
            "`active: false` and nothing else. Any tenant's key with the scope `tokens:introspect` may ask "
            "about any tenant's token: the answer repeats what the token says, and the risk band that "
            "verification of a certificate tells everyone."
        ),
        request={forms.MEDIA_TYPE: TOKEN_FORM},
        examples=[examples.TOKEN, examples.ACTIVE, examples.INACTIVE],
        responses={200: IntrospectionSerializer, **description.errors()},
    )
    def introspect(self, request: ApiRequest) -> Response:
        token = forms.of(request._request).require("token")
        found = services.introspect(token=token, now=now())
        return Response(shown_introspection(found, tenant_id=request.auth.tenant_id))

    @extend_schema(
        operation_id="revokeToken",
        summary="Revoke a token and all that came of it (RFC 7009)",
        description=(
            "As `POST /v1/delegations/{token_id}/revoke`, by the token's text. 200 as well for a token "
            "that is unknown, expired or revoked already; 400 `unauthorized_client` for one that another "
            "tenant's agent issued."
        ),
        request={forms.MEDIA_TYPE: TOKEN_FORM},
        examples=[examples.TOKEN, examples.NOTHING],
        responses={200: inline_serializer("Revoked", {}), **description.errors()},
    )
    def revoke(self, request: ApiRequest) -> Response:
        token = forms.of(request._request).require("token")
        try:
            services.revoke_token(token=token, **caller_of(request))
        except IssuedByAnother as error:
            raise UnauthorizedClient(error.message) from error
        return Response({})


class TokenViewSet(OAuthViewSet):
    """The token endpoint, for API keys and for agents."""

    authentication_classes = (agent_clients.AgentAuthentication, clients.ClientAuthentication)
    required_scopes: ClassVar = {"create": Scope.DELEGATIONS_ISSUE}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with environments.use(agent_clients.environment_of(request) or environments.current()):
            return super().dispatch(request, *args, **kwargs)

    @extend_schema(
        operation_id="exchangeToken",
        summary="Exchange a token for a delegation to an agent, or issue an agent its own",
        description=(
            "Token exchange (RFC 8693): the new token's chain is the subject's and the agent that "
            "`actor_token` names. An ID token or ID-JAG of a trusted issuer makes its root `verified`. The "
            "client is an API key with the scope `delegations:issue`: by HTTP Basic with its id and itself, "
            "in the body, or as a bearer. An agent authenticates by `private_key_jwt` with a key of its own, "
            "and asks by `client_credentials` for itself alone, or by `jwt-bearer` with an ID-JAG in "
            "`assertion` on behalf of a person."
        ),
        parameters=[description.DPOP],
        request={forms.MEDIA_TYPE: description.TokenRequestSerializer},
        examples=[description.EXCHANGE, description.EXCHANGED],
        responses={200: description.TokenResponseSerializer, **description.errors()},
    )
    def create(self, request: ApiRequest) -> Response:
        moment, form, client = now(), forms.of(request._request), request.auth
        prove = partial(proofs.proven_key, proof=request.headers.get("DPoP"), path=TOKEN_PATH, now=moment)
        if isinstance(client, AgentClient):
            issued_type = ACCESS_TOKEN
            issued = agent_clients.issue(client=client, form=form, proven_key=prove(), now=moment)
        else:
            wanted = exchange.read(form)
            issued_type, asked = wanted.issued_type, replace(wanted, proven_key=prove())
            actor = Actor.api_key(client.id)
            issued = exchange.exchange(tenant_id=client.tenant_id, asked=asked, actor=actor, now=moment)
        delegation = issued.delegation
        return Response(
            {
                "access_token": issued.token,
                "issued_token_type": issued_type,
                "token_type": "DPoP" if delegation.bound_to else "Bearer",
                "expires_in": delegation.expires_at - delegation.issued_at,
                "scope": delegation.scope,
            },
            # RFC 9449 §8.2: the nonce for the next proof.
            headers={"DPoP-Nonce": proofs.current_nonce(now=moment)}
            if settings.DPOP_NONCE_REQUIRED
            else None,
        )


class MetadataViewSet(PublicViewSet):
    schema_tag = "OAuth"

    @extend_schema(
        operation_id="getAuthorizationServerMetadata",
        summary="What this authorization server offers",
        description="Authorization server metadata (RFC 8414), not enveloped; both environments share it.",
        auth=[],
        responses={200: description.MetadataSerializer, **schema.errors(*schema.PUBLIC)},
    )
    def retrieve(self, request: Request) -> Response:
        max_age = int(JWKS_MAX_AGE.total_seconds())
        return Response(document(), headers={"Cache-Control": f"public, max-age={max_age}"})

    @extend_schema(exclude=True)
    def of_path(self, request: Request, path: str) -> Response:
        """RFC 8414 §3.1: the path of the issuer stands behind the well-known name."""
        if f"/{path}" != urlsplit(settings.TOKEN_ISSUER).path:
            raise Http404
        return self.retrieve(request)


def document() -> dict[str, Any]:
    """The metadata; there is no authorization endpoint, so no response type."""
    methods = list(clients.METHODS)
    return {
        "issuer": settings.TOKEN_ISSUER,
        "token_endpoint": f"{settings.BASE_URL}{TOKEN_PATH}",
        "introspection_endpoint": f"{settings.BASE_URL}/oauth/introspect",
        "revocation_endpoint": f"{settings.BASE_URL}/oauth/revoke",
        "jwks_uri": f"{settings.BASE_URL}/.well-known/jwks.json",
        "response_types_supported": [],
        "grant_types_supported": [GRANT_TYPE, agent_clients.CLIENT_CREDENTIALS, agent_clients.JWT_BEARER],
        "authorization_grant_profiles_supported": [agent_clients.JAG_PROFILE],
        "token_endpoint_auth_methods_supported": [*methods, agent_clients.METHOD],
        "token_endpoint_auth_signing_alg_values_supported": list(agent_clients.ALGORITHMS),
        "dpop_signing_alg_values_supported": list(ALGORITHMS),
        "introspection_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        # No standard names this member; RFC 8414 §2 permits others. Clients learn the agents' type from it.
        "actor_token_types_supported": [agent_type(), *DELEGATION_TYPES],
    }
