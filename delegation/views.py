"""`/v1/agents/{id}/delegation`, `/v1/delegation/verify` and `/.well-known/jwks.json`."""

from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    PolymorphicProxySerializer,
    extend_schema,
    inline_serializer,
)
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.idempotency import idempotent
from compliance.api.pagination import read_choice
from compliance.api.rest.endpoints import answered, question_of, respond
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import IDEMPOTENCY_KEY, KEYED, PUBLIC, enveloped, errors
from compliance.api.rest.views import ApiViewSet, PublicViewSet
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from delegation import examples, serializers
from delegation.endpoints import ISSUE_DELEGATION, VERIFY_DELEGATION, IssueRequest
from delegation.lifecycle import JWKS_MAX_AGE
from delegation.token_keys import keys

AGENT_ID = OpenApiParameter("agent_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)
ENVIRONMENT = OpenApiParameter("environment", OpenApiTypes.STR, enum=[item.value for item in Environment])
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
    required_scopes: ClassVar = {"create": ISSUE_DELEGATION.scope}

    @extend_schema(
        operation_id="issueDelegation",
        summary="Issue a delegation token",
        description=(
            "A signed statement of who acts for whom, root to current, in the manner of RFC 8693. The "
            "agent must be neither suspended nor retired, and its latest certificate, if any, active. "
            "The text of the token is kept nowhere; `GET /v1/delegations` and `delegation.issued` in the "
            "audit log tell of it."
        ),
        parameters=[AGENT_ID, IDEMPOTENCY_KEY, DPOP],
        request=serializers.IssueDelegationSerializer,
        examples=[examples.GRANT, examples.REDELEGATION, examples.ISSUED],
        responses={
            200: enveloped(serializers.DelegationSerializer),
            **errors(
                *KEYED,
                409,
                e400="invalid_dpop_proof: the proof was used before",
                e404="Agent not found",
                e422="The scope exceeds the agent's permitted actions: place_order",
                e503="KMS signing service unavailable",
            ),
        },
    )
    def create(self, request: ApiRequest, agent_id: str) -> Response:
        question = ISSUE_DELEGATION.proven(question_of(ISSUE_DELEGATION, request, agent_id))
        return self.issue(request, question, proven_key=question.proven_key)

    @idempotent
    def issue(self, request: ApiRequest, question: IssueRequest, *, proven_key: str | None) -> Response:
        return answered(ISSUE_DELEGATION, question)


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
        return respond(VERIFY_DELEGATION, request)

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
        chosen = read_choice(request.query_params, "environment", [item.value for item in Environment])
        with environments.use(Environment(chosen or Environment.LIVE)):
            found = keys.jwks(now=now())
        max_age = int(JWKS_MAX_AGE.total_seconds())
        return Response({"keys": found}, headers={"Cache-Control": f"public, max-age={max_age}"})
