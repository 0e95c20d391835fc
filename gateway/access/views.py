"""`/access/v1` (OpenID AuthZEN Authorization API 1.0), its metadata, and `/v1/approval-policies`."""

from typing import Any, ClassVar

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response

from agents.blueprints.serializers import PutAskPolicySerializer
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import ok
from compliance.api.rest.endpoints import respond
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import KEYED, PUBLIC, enveloped, errors
from compliance.api.rest.views import ApiViewSet, PublicViewSet, operation, validated
from compliance.core.errors import Invalid
from gateway.access import openapi, serializers, services
from gateway.access.endpoints import EVALUATE, EVALUATE_ALL
from gateway.access.serializers import AskPolicySerializer
from gateway.models import AskPolicy

TAG = "Decisions"
NOT_FOUND = "Approval policy not found"
METADATA_SECONDS = 3600
# The standard has no 415 (§10.1.1): a body of another media type is a 400.
DECISION_ERRORS = errors(*(status for status in KEYED if status != 415))


class AccessViewSet(ApiViewSet):
    """Decisions before an act, in the environment of the key; no cache keeps one."""

    schema_tag = TAG
    bucket = "gateway"
    required_scopes: ClassVar = dict.fromkeys(("evaluate", "evaluate_all"), Scope.DECISIONS_EVALUATE)

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, UnsupportedMediaType):
            exc = Invalid("Content-Type must be application/json")
        return super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response

    @extend_schema(
        operation_id="evaluateAccess",
        summary="Decide whether an agent may do something",
        description=openapi.EVALUATE_TEXT,
        request={"application/json": serializers.EVALUATION_SCHEMA},
        examples=[openapi.ACT, openapi.ALLOWED, openapi.ASKED],
        responses={200: serializers.AccessDecisionSerializer, **DECISION_ERRORS},
    )
    def evaluate(self, request: ApiRequest) -> Response:
        return respond(EVALUATE, request)

    @extend_schema(
        operation_id="evaluateAccesses",
        summary="Decide on several acts",
        description=openapi.EVALUATE_ALL_TEXT,
        request={"application/json": serializers.EVALUATIONS_SCHEMA},
        examples=[openapi.ACTS, openapi.DECIDED],
        responses={200: serializers.AccessDecisionsSerializer, **DECISION_ERRORS},
    )
    def evaluate_all(self, request: ApiRequest) -> Response:
        return respond(EVALUATE_ALL, request)


class AuthzenConfigurationViewSet(PublicViewSet):
    schema_tag = TAG

    @extend_schema(
        operation_id="getAuthzenConfiguration",
        summary="Where decisions are made",
        description="Policy decision point metadata (AuthZEN Authorization API 1.0 §9).",
        auth=[],
        responses={200: serializers.AuthzenConfigurationSerializer, **errors(*PUBLIC)},
    )
    def retrieve(self, request: Request) -> Response:
        found = {
            "policy_decision_point": settings.BASE_URL,
            "access_evaluation_endpoint": f"{settings.BASE_URL}{EVALUATE.path}",
            "access_evaluations_endpoint": f"{settings.BASE_URL}{EVALUATE_ALL.path}",
        }
        return Response(found, headers={"Cache-Control": f"public, max-age={METADATA_SECONDS}"})


class AskPolicyViewSet(ApiViewSet):
    """When people are asked before agents act."""

    schema_tag = TAG
    http_method_names = ["get", "put", "delete", "head"]

    @operation(
        "listApprovalPolicies",
        "List approval policies, oldest first",
        Scope.GATEWAY_READ,
        enveloped(AskPolicySerializer, many=True),
    )
    def list(self, request: ApiRequest) -> Response:
        policies = AskPolicy.objects.for_tenant(request.auth.tenant_id).order_by("created_at", "id")
        return ok(AskPolicySerializer(policies, many=True).data)

    @operation(
        "getApprovalPolicy",
        "Fetch an approval policy",
        Scope.GATEWAY_READ,
        AskPolicySerializer,
        parameters=[openapi.APPLIES_TO],
        examples=[openapi.A_POLICY],
        e404=NOT_FOUND,
    )
    def retrieve(self, request: ApiRequest, applies_to: str) -> Response:
        found = services.find(tenant_id=request.auth.tenant_id, applies_to=applies_to)
        return ok(AskPolicySerializer(found).data)

    @operation(
        "putApprovalPolicy",
        "Set an approval policy",
        Scope.GATEWAY_WRITE,
        AskPolicySerializer,
        description=f"{openapi.PRECEDENCE} Counts within a second.",
        parameters=[openapi.APPLIES_TO],
        request=PutAskPolicySerializer,
        examples=[openapi.POLICY, openapi.A_POLICY],
        e404=NOT_FOUND,
        e409="The tenant has as many approval policies as it can have",
    )
    def replace(self, request: ApiRequest, applies_to: str) -> Response:
        fields = validated(PutAskPolicySerializer, request)
        policy = services.put(applies_to=applies_to, fields=fields, **caller_of(request))
        return ok(AskPolicySerializer(policy).data)

    @operation(
        "deleteApprovalPolicy",
        "Remove an approval policy",
        Scope.GATEWAY_WRITE,
        status=204,
        description="A less specific one counts from then on, or nobody is asked.",
        parameters=[openapi.APPLIES_TO],
        e404=NOT_FOUND,
    )
    def destroy(self, request: ApiRequest, applies_to: str) -> Response:
        services.remove(applies_to=applies_to, **caller_of(request))
        return Response(status=204)
