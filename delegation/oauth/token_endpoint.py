"""`POST /oauth/token`."""

from typing import ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from auditlog.vocabulary import Actor
from compliance.api.rest.permissions import Scope
from compliance.api.rest.requests import ApiRequest
from compliance.core.clock import now
from delegation.oauth import description, exchange, possession, serializers
from delegation.oauth.base import OAuthViewSet, form_of


class TokenViewSet(OAuthViewSet):
    schema_tag = "OAuth"
    required_scopes: ClassVar = {"create": Scope.DELEGATIONS_ISSUE}

    @extend_schema(
        operation_id="exchangeToken",
        summary="Exchange a token for a delegation to an agent (RFC 8693)",
        description=(
            "The new token's chain is the subject's and the agent that `actor_token` names. An ID token "
            "of a trusted issuer makes its root `verified`. The client is an API key with the scope "
            "`delegations:issue`: by HTTP Basic with its id and itself, in the body, or as a bearer."
        ),
        parameters=[description.DPOP],
        request={description.FORM: serializers.TokenRequestSerializer},
        examples=[description.EXCHANGE, description.EXCHANGED],
        responses={200: serializers.TokenResponseSerializer, **description.errors()},
    )
    def create(self, request: ApiRequest) -> Response:
        form, moment = form_of(request), now()
        asked = exchange.read(form)
        issued = exchange.exchange(
            tenant_id=request.auth.tenant_id,
            request=asked,
            possession=possession.of(request._request, form, now=moment),
            actor=Actor.api_key(request.auth.id),
            now=moment,
        )
        delegation = issued.delegation
        return Response(
            {
                "access_token": issued.token,
                "issued_token_type": asked.issued_type,
                "token_type": "DPoP" if delegation.bound_to else "Bearer",
                "expires_in": delegation.expires_at - delegation.issued_at,
                "scope": delegation.scope,
            },
            headers=possession.next_nonce(now=moment),
        )
