"""`/v1/delegations` and `/v1/status-lists/{id}`."""

from typing import Any, ClassVar

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from auditlog.vocabulary import Actor
from compliance.api.pagination import keyset_page, read_choice, read_cursor, read_id, read_limit
from compliance.api.rest.permissions import Scope
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.responses import ok, page
from compliance.api.rest.schema import BEFORE, KEYED, LIMIT, PUBLIC, enveloped, errors, paged
from compliance.api.rest.views import ApiViewSet, PublicViewSet, validated
from compliance.core.clock import now
from delegation.issued import examples, revocation, status_lists
from delegation.issued.listing import listed, page_by_standing
from delegation.issued.serializers import IssuedTokenSerializer, RevokeDelegationSerializer
from delegation.models import IssuedToken

TOKEN_ID = OpenApiParameter("token_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)
ACTIVE = {"true": True, "false": False}


class DelegationViewSet(ApiViewSet):
    """The tokens that the tenant's agents issued, without their text."""

    schema_tag = "Delegation"
    required_scopes: ClassVar = {
        "list": Scope.DELEGATIONS_READ,
        "retrieve": Scope.DELEGATIONS_READ,
        "revoke": Scope.DELEGATIONS_REVOKE,
    }

    @extend_schema(
        operation_id="listDelegations",
        summary="List issued delegation tokens, newest first",
        description=(
            "Tokens of the tenant's agents, until a week after they have expired. `active=true` keeps those "
            "that stand now: unexpired, unrevoked with all tokens they came of, and every agent behind them "
            "neither suspended nor retired and with the certificate under which it issued."
        ),
        parameters=[
            OpenApiParameter("agent_id", OpenApiTypes.UUID),
            OpenApiParameter("active", OpenApiTypes.STR, enum=list(ACTIVE)),
            BEFORE,
            LIMIT,
        ],
        examples=[examples.LISTED],
        responses={200: paged(IssuedTokenSerializer, tells_next=True), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        params, moment = request.query_params, now()
        active = read_choice(params, "active", list(ACTIVE))
        rows = IssuedToken.objects.for_tenant(request.auth.tenant_id).of_agent(read_id(params, "agent_id"))
        cursor, limit = read_cursor(params), read_limit(params)
        if active is None:
            found = keyset_page(rows, cursor=cursor, limit=limit, field="issued_at")
        else:
            found = page_by_standing(rows, is_wanted=ACTIVE[active], cursor=cursor, limit=limit, now=moment)
        shown = [IssuedTokenSerializer(one).data for one in listed(found.rows, now=moment)]
        return page(shown, next_cursor=found.next_cursor, has_next_page=found.has_next)

    @extend_schema(
        operation_id="getDelegation",
        summary="Fetch an issued delegation token",
        parameters=[TOKEN_ID],
        examples=[examples.STANDING],
        responses={200: enveloped(IssuedTokenSerializer), **errors(*KEYED, e404="Delegation not found")},
    )
    def retrieve(self, request: ApiRequest, token_id: str) -> Response:
        row = IssuedToken.objects.for_tenant(request.auth.tenant_id).find(token_id)
        return _shown(row)

    @extend_schema(
        operation_id="revokeDelegation",
        summary="Revoke a delegation token and all that came of it",
        description=(
            "The token and every token handed on from it, of any tenant, stop counting at once for "
            "introspection, gateways and handing on, and within seconds in the status list. Verification of "
            "the signature alone does not show it. Revoking again changes nothing. Audited as "
            "`delegation.revoked`."
        ),
        parameters=[TOKEN_ID],
        request=RevokeDelegationSerializer,
        examples=[examples.REVOCATION, examples.REVOKED],
        responses={200: enveloped(IssuedTokenSerializer), **errors(*KEYED, e404="Delegation not found")},
    )
    def revoke(self, request: ApiRequest, token_id: str) -> Response:
        row = revocation.revoke(
            tenant_id=request.auth.tenant_id,
            token_id=token_id,
            reason=validated(RevokeDelegationSerializer, request)["reason"],
            actor=Actor.api_key(request.auth.id),
            now=now(),
        )
        return _shown(row)


class StatusListViewSet(PublicViewSet):
    schema_tag = "Delegation"

    @extend_schema(
        operation_id="getStatusList",
        summary="The statuses of issued tokens as a signed list",
        description=(
            "A Token Status List (draft-ietf-oauth-status-list) for verifiers that work offline: a token's "
            "claim `status` names its list and its bit. 0: the token stands; 1: it does not, now. The JWT "
            "has the type `statuslist+jwt` and a key of `/.well-known/jwks.json`."
        ),
        auth=[],
        parameters=[OpenApiParameter("list_id", OpenApiTypes.STR, location=OpenApiParameter.PATH)],
        responses={
            (200, status_lists.MEDIA_TYPE): OpenApiResponse(
                OpenApiTypes.STR, examples=[examples.STATUS_LIST]
            ),
            304: OpenApiResponse(None, "Not modified since the `ETag` in `If-None-Match`"),
            **errors(*PUBLIC, e404="Status list not found"),
        },
    )
    def retrieve(self, request: Request, list_id: str) -> HttpResponse:
        found = status_lists.read(list_id=list_id, now=now())
        response = HttpResponse(found.token, content_type=status_lists.MEDIA_TYPE)
        response["ETag"] = found.etag
        response["Cache-Control"] = f"public, max-age={status_lists.TTL_SECONDS}"
        response["Access-Control-Allow-Origin"] = "*"
        response["X-Content-Type-Options"] = "nosniff"
        conditional: Any = get_conditional_response(request._request, found.etag, None, response)
        return response if conditional is None else conditional


def _shown(row: IssuedToken) -> Response:
    (found,) = listed([row], now=now())
    return ok(IssuedTokenSerializer(found).data)
