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

from auditlog.vocabulary import Actor
from compliance import environments
from compliance.api.idempotency import idempotent
from compliance.api.pagination import read_choice
from compliance.api.permissions import Scope
from compliance.api.requests import ApiRequest
from compliance.api.responses import ok
from compliance.api.schema import IDEMPOTENCY_KEY, KEYED, PUBLIC, enveloped, errors
from compliance.api.throttling import PublicThrottle
from compliance.api.views import ApiViewSet, PublicViewSet, validated
from compliance.clock import now
from compliance.environments import Environment
from delegation import examples, keys, services
from delegation.lifecycle import JWKS_MAX_AGE
from delegation.serializers import (
    DelegationSerializer,
    InvalidDelegationSerializer,
    IssueDelegationSerializer,
    JwksSerializer,
    ValidDelegationSerializer,
    VerifyDelegationSerializer,
    grant_from,
)

AGENT_ID = OpenApiParameter("agent_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)
ENVIRONMENT = OpenApiParameter(
    "environment", OpenApiTypes.STR, enum=[environment.value for environment in Environment]
)
VERDICT: Any = inline_serializer(
    "DelegationVerdictEnvelope",
    {
        "data": PolymorphicProxySerializer(
            component_name="DelegationVerdict",
            serializers=[ValidDelegationSerializer, InvalidDelegationSerializer],
            resource_type_field_name=None,
        )
    },
)


class AgentDelegationViewSet(ApiViewSet):
    """The delegation tokens of the tenant's agents."""

    schema_tag = "Delegation"
    required_scopes: ClassVar = {"create": Scope.DELEGATIONS_ISSUE}

    @extend_schema(
        operation_id="issueDelegation",
        summary="Issue a delegation token",
        description=(
            "A signed statement of who acts for whom, root to current, in the manner of RFC 8693. The "
            "agent must be neither suspended nor retired, and its latest certificate, if any, active. "
            "The token is kept nowhere; `delegation.issued` in the audit log tells of it."
        ),
        parameters=[AGENT_ID, IDEMPOTENCY_KEY],
        request=IssueDelegationSerializer,
        examples=[examples.GRANT, examples.REDELEGATION, examples.ISSUED],
        responses={
            200: enveloped(DelegationSerializer),
            **errors(
                *KEYED,
                409,
                e404="Agent not found",
                e422="The scope exceeds the agent's permitted actions: place_order",
                e503="KMS signing service unavailable",
            ),
        },
    )
    @idempotent
    def create(self, request: ApiRequest, agent_id: str) -> Response:
        issued = services.issue(
            tenant_id=request.auth.tenant_id,
            agent_id=agent_id,
            grant=grant_from(validated(IssueDelegationSerializer, request)),
            actor=Actor.api_key(request.auth.id),
            now=now(),
        )
        return ok(DelegationSerializer(issued).data)


class DelegationVerifyViewSet(PublicViewSet):
    """Verification for anyone who was handed a token."""

    schema_tag = "Delegation"
    throttle_classes = (PublicThrottle,)

    @extend_schema(
        operation_id="verifyDelegation",
        summary="Verify a delegation token",
        description=(
            "Checks signature, issuer and times, and nothing else: a caller compares `audience` with itself "
            "and asks `GET /v1/verify/{certificate_serial}` whether the agent has been stopped since. "
            "200 for both outcomes; branch on `valid`. Reasons, in the order of the checks: `malformed`, "
            "`unsupported_algorithm`, `unknown_key`, `invalid_signature`, `invalid_issuer`, `not_yet_valid`, "
            "`expired`."
        ),
        request=VerifyDelegationSerializer,
        examples=[examples.TOKEN, examples.VALID, examples.EXPIRED],
        responses={200: VERDICT, **errors(*PUBLIC)},
    )
    def verify(self, request: Request) -> Response:
        token = validated(VerifyDelegationSerializer, request)["token"]
        verdict = services.verify(token=token, now=now())
        serializer = ValidDelegationSerializer if verdict.valid else InvalidDelegationSerializer
        return ok(serializer(verdict).data)


class JwksViewSet(PublicViewSet):
    """The public keys of delegation tokens."""

    schema_tag = "Delegation"
    throttle_classes = (PublicThrottle,)

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
        responses={200: JwksSerializer, **errors(*PUBLIC)},
    )
    def retrieve(self, request: Request) -> Response:
        chosen = read_choice(request.query_params, "environment", [item.value for item in Environment])
        with environments.use(Environment(chosen or Environment.LIVE)):
            found = keys.jwks(now=now())
        max_age = int(JWKS_MAX_AGE.total_seconds())
        return Response({"keys": found}, headers={"Cache-Control": f"public, max-age={max_age}"})
