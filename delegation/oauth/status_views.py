"""`/oauth/introspect` (RFC 7662) and `/oauth/revoke` (RFC 7009)."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.response import Response

from auditlog.vocabulary import Actor
from compliance.api.rest.permissions import Scope
from compliance.api.rest.requests import ApiRequest
from compliance.core.clock import now
from delegation import services
from delegation.errors import IssuedByAnother
from delegation.issued import examples
from delegation.issued.serializers import IntrospectionSerializer, shown_introspection
from delegation.oauth.base import OAuthViewSet, form_of
from delegation.oauth.description import FORM, errors
from delegation.oauth.errors import UnauthorizedClient

TOKEN_FORM = inline_serializer(
    "PresentedToken",
    {
        "token": serializers.CharField(),
        "token_type_hint": serializers.CharField(required=False, help_text="Ignored."),
    },
)


class TokenStatusViewSet(OAuthViewSet):
    """What becomes of a token after it was issued."""

    schema_tag = "OAuth"
    required_scopes: ClassVar = {
        "introspect": Scope.TOKENS_INTROSPECT,
        "revoke": Scope.DELEGATIONS_REVOKE,
    }

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
        request={FORM: TOKEN_FORM},
        examples=[examples.TOKEN_EXAMPLE, examples.ACTIVE, examples.INACTIVE],
        responses={200: IntrospectionSerializer, **errors()},
    )
    def introspect(self, request: ApiRequest) -> Response:
        token = form_of(request).require("token")
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
        request={FORM: TOKEN_FORM},
        examples=[examples.TOKEN_EXAMPLE, examples.NOTHING],
        responses={200: inline_serializer("Revoked", {}), **errors()},
    )
    def revoke(self, request: ApiRequest) -> Response:
        try:
            services.revoke_token(
                tenant_id=request.auth.tenant_id,
                token=form_of(request).require("token"),
                actor=Actor.api_key(request.auth.id),
                now=now(),
            )
        except IssuedByAnother as error:
            raise UnauthorizedClient(error.message) from error
        return Response({})
