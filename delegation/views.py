"""`/v1/agents/{id}/delegation`, `/v1/delegation/verify`, `/v1/delegations`, status lists and the JWKS."""

from datetime import datetime
from typing import Any

from django.http import HttpResponse
from django.utils.cache import get_conditional_response
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    PolymorphicProxySerializer,
    extend_schema,
    inline_serializer,
)
from rest_framework.request import Request
from rest_framework.response import Response

from agents.errors import AgentNotFound
from auditlog.actors.requests import caller_of
from auditlog.vocabulary import Actor
from compliance.api.gate import Scope
from compliance.api.idempotency import idempotent
from compliance.api.pagination import (
    keyset_page,
    ok,
    page,
    read_choice,
    read_cursor,
    read_environment,
    read_id,
    read_limit,
)
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import ENVIRONMENT, IDEMPOTENCY_KEY, PUBLIC, errors
from compliance.api.rest.views import ApiViewSet, PublicViewSet, listing, operation, validated
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import parse_id
from delegation import examples, proofs, serializers, services
from delegation.errors import AgentDoesNotStand, IssuedTokenNotFound
from delegation.issued import status_lists
from delegation.issued.credentials import issue_credential
from delegation.issued.listing import listed, page_by_standing
from delegation.lifecycle import JWKS_MAX_AGE
from delegation.models import IssuedToken
from delegation.token_keys import keys

ACTIVE = {"true": True, "false": False}
NOT_FOUND = IssuedTokenNotFound.message
DPOP = OpenApiParameter(
    "DPoP",
    location=OpenApiParameter.HEADER,
    description=(
        "A proof (RFC 9449) for this URL under the service's public address, by ES256 or EdDSA. The token "
        "is bound to its key, or to `dpop_jkt`. A bound token is handed on only with a proof by its key."
    ),
)
VERDICT = PolymorphicProxySerializer(
    "DelegationVerdict",
    [serializers.ValidDelegationSerializer, serializers.InvalidDelegationSerializer],
    None,
)
VERDICT_ENVELOPE: Any = inline_serializer("DelegationVerdictEnvelope", {"data": VERDICT})


class AgentDelegationViewSet(ApiViewSet):
    schema_tag = "Delegation"

    @operation(
        "issueDelegation",
        "Issue a delegation token",
        Scope.DELEGATIONS_ISSUE,
        serializers.DelegationSerializer,
        description=(
            "A signed statement of who acts for whom, root to current, in the manner of RFC 8693. The agent "
            "must be neither suspended nor retired, and its latest certificate, if any, active. The text of "
            "the token is kept nowhere; `GET /v1/delegations` and `delegation.issued` in the audit log tell "
            "of it."
        ),
        parameters=[IDEMPOTENCY_KEY, DPOP],
        request=serializers.IssueDelegationSerializer,
        examples=[examples.GRANT, examples.REDELEGATION, examples.ISSUED],
        e400="invalid_dpop_proof: the proof was used before",
        e404="Agent not found",
        e422="The scope exceeds the agent's permitted actions: place_order",
        e503="KMS signing service unavailable",
    )
    def create(self, request: ApiRequest, agent_id: str) -> Response:
        body, moment = validated(serializers.IssueDelegationSerializer, request), now()
        if parse_id(agent_id) is None:
            raise AgentNotFound()
        path = f"/v1/agents/{agent_id}/delegation"
        key = proofs.proven_key(proof=request.headers.get("DPoP"), path=path, now=moment)
        return self.issue(request, agent_id, body, moment, proven_key=key)

    @idempotent
    def issue(
        self,
        request: ApiRequest,
        agent_id: str,
        body: dict[str, Any],
        moment: datetime,
        *,
        proven_key: str | None,
    ) -> Response:
        issued = services.issue(
            tenant_id=request.auth.tenant_id,
            agent_id=agent_id,
            grant=serializers.grant_from(body, proven_key=proven_key),
            parent=services.read_parent(token=body.get("parent_token"), now=moment),
            actor=Actor.api_key(request.auth.id),
            now=moment,
        )
        return ok(serializers.DelegationSerializer(issued).data)

    @operation(
        "getAgentCredential",
        "Fetch an agent's verifiable credential",
        Scope.AGENTS_READ,
        serializers.AgentCredentialSerializer,
        description=(
            "What the certificate in force states, as a W3C Verifiable Credential 2.0 in a JWT, signed anew "
            "for a day at most by a key of `/.well-known/jwks.json`. `credentialStatus` and the claim "
            "`status` name its bit in a status list (`GET /v1/status-lists/{list_id}`): 1 while the agent or "
            "the certificate is stopped. Audited as `credential.issued`."
        ),
        examples=[examples.CREDENTIAL],
        e404=AgentNotFound.message,
        e422=AgentDoesNotStand.message,
        e503="KMS signing service unavailable",
    )
    def credential(self, request: ApiRequest, agent_id: str) -> Response:
        issued = issue_credential(
            agent_id=agent_id,
            **caller_of(request),
        )
        return ok(serializers.AgentCredentialSerializer(issued).data)


class PublicDelegationViewSet(PublicViewSet):
    """Verification for anyone who was handed a token, and the keys for doing it offline."""

    schema_tag = "Delegation"

    @extend_schema(
        operation_id="verifyDelegation",
        summary="Verify a delegation token",
        description=(
            "Checks signature, issuer, times and, if the body names one, the audience, and nothing else: "
            "whether the token or an agent behind it has been stopped since, `POST /oauth/introspect` and "
            "the status list tell. 200 for both outcomes; branch on `valid`. Reasons, in the order of the "
            "checks: `malformed`, `unsupported_algorithm`, `unknown_key`, `invalid_signature`, "
            "`invalid_issuer`, `not_yet_valid`, `expired`, `invalid_audience`."
        ),
        request=serializers.VerifyDelegationSerializer,
        examples=[examples.TOKEN, examples.VALID, examples.EXPIRED],
        responses={200: VERDICT_ENVELOPE, **errors(*PUBLIC)},
    )
    def verify(self, request: Request) -> Response:
        body = validated(serializers.VerifyDelegationSerializer, request)
        found = services.verify(token=body["token"], audience=body.get("audience"), now=now())
        return ok(serializers.shown_verification(found))

    @extend_schema(
        operation_id="getJwks",
        summary="The public keys that verify delegation tokens",
        description=(
            "A JWK Set (RFC 7517), not enveloped. Keys stand here before they sign and for a day after, so a "
            "copy may be kept for as long as `Cache-Control` says."
        ),
        auth=[],
        parameters=[ENVIRONMENT],
        examples=[examples.JWKS],
        responses={200: serializers.JwksSerializer, **errors(*PUBLIC)},
    )
    def jwks(self, request: Request) -> Response:
        with environments.use(read_environment(request.query_params)):
            found = keys.jwks(now=now())
        max_age = int(JWKS_MAX_AGE.total_seconds())
        return Response({"keys": found}, headers={"Cache-Control": f"public, max-age={max_age}"})


class DelegationViewSet(ApiViewSet):
    """The tokens that the tenant's agents issued, without their text."""

    schema_tag = "Delegation"

    @listing(
        "listDelegations",
        "List issued delegation tokens, newest first",
        Scope.DELEGATIONS_READ,
        serializers.IssuedTokenSerializer,
        description=(
            "Tokens of the tenant's agents, until a week after they have expired. `active=true` keeps those "
            "that stand now: unexpired, unrevoked with all tokens they came of, and every agent behind them "
            "neither suspended nor retired and with the certificate under which it issued."
        ),
        parameters=[
            OpenApiParameter("agent_id", OpenApiTypes.UUID),
            OpenApiParameter("active", OpenApiTypes.STR, enum=list(ACTIVE)),
        ],
        examples=[examples.LISTED],
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
        shown = [serializers.IssuedTokenSerializer(one).data for one in listed(found.rows, now=moment)]
        return page(shown, next_cursor=found.next_cursor, has_next_page=found.has_next)

    @operation(
        "getDelegation",
        "Fetch an issued delegation token",
        Scope.DELEGATIONS_READ,
        serializers.IssuedTokenSerializer,
        examples=[examples.STANDING],
        e404=NOT_FOUND,
    )
    def retrieve(self, request: ApiRequest, token_id: str) -> Response:
        row = IssuedToken.objects.for_tenant(request.auth.tenant_id).find(token_id)
        return _shown(row)

    @operation(
        "revokeDelegation",
        "Revoke a delegation token and all that came of it",
        Scope.DELEGATIONS_REVOKE,
        serializers.IssuedTokenSerializer,
        description=(
            "The token and every token handed on from it, of any tenant, stop counting at once for "
            "introspection, gateways and handing on, and within seconds in the status list. Verification of "
            "the signature alone does not show it. Revoking again changes nothing. Audited as "
            "`delegation.revoked`."
        ),
        request=serializers.RevokeDelegationSerializer,
        examples=[examples.REVOCATION, examples.REVOKED],
        e404=NOT_FOUND,
    )
    def revoke(self, request: ApiRequest, token_id: str) -> Response:
        row = services.revoke(
            token_id=token_id,
            reason=validated(serializers.RevokeDelegationSerializer, request)["reason"],
            **caller_of(request),
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
        response["X-Content-Type-Options"] = "nosniff"
        conditional: Any = get_conditional_response(request._request, found.etag, None, response)
        return response if conditional is None else conditional


def _shown(row: IssuedToken) -> Response:
    (found,) = listed([row], now=now())
    return ok(serializers.IssuedTokenSerializer(found).data)
