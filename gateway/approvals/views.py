"""`/v1/approvals`: ask for an approval, and wait for the answer. No API key decides."""

from collections.abc import Mapping

from rest_framework.response import Response

from agents.errors import AgentNotFound
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import newest_first, ok, read_choice, read_id
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from compliance.core.clock import now
from compliance.core.errors import Invalid
from gateway.approvals import openapi, services
from gateway.approvals.errors import ApprovalNotFound, TooManyPending
from gateway.approvals.models import Approval, ApprovalStatus
from gateway.approvals.serializers import (
    DEFAULT_TTL,
    ApprovalDetailSerializer,
    ApprovalSerializer,
    OpenApprovalSerializer,
    shown_approval,
    shown_detail,
)


class ApprovalViewSet(ApiViewSet):
    """The tenant's approvals."""

    schema_tag = "Approvals"

    @operation(
        "openApproval",
        "Ask for an approval",
        Scope.DECISIONS_EVALUATE,
        ApprovalDetailSerializer,
        status=201,
        description=openapi.OPEN_TEXT,
        request=OpenApprovalSerializer,
        examples=[openapi.QUESTION],
        repeats=True,
        e404=AgentNotFound.message,
        e409=TooManyPending.message,
        e422="The agent or its certificate is not active",
    )
    def create(self, request: ApiRequest) -> Response:
        given, asked = validated(OpenApprovalSerializer, request), caller_of(request)
        approval = services.open_approval(
            agent_id=given["agent_id"],
            action_name=given["action"],
            action_type=given.get("action_type"),
            details=given.get("details", {}),
            risk_score=None,
            risk_band=None,
            reasons=[],
            ttl_seconds=given.get("ttl_seconds", DEFAULT_TTL),
            decision_id=None,
            **asked,
        )
        return ok(shown_detail(approval, asked["now"]), status=201)

    @listing(
        "listApprovals",
        "List approvals, newest first",
        Scope.DECISIONS_EVALUATE,
        ApprovalSerializer,
        parameters=[openapi.AGENT_FILTER, openapi.STATUS_FILTER],
    )
    def list(self, request: ApiRequest) -> Response:
        params, moment = request.query_params, now()
        status = read_choice(params, "status", ApprovalStatus.values)
        own = Approval.objects.for_tenant(request.auth.tenant_id).where(agent_id=read_id(params, "agent_id"))
        return newest_first(
            own.with_status(status, moment),
            request,
            lambda rows: [shown_approval(row, moment) for row in rows],
            field="requested_at",
            heavy="details",
        )

    @operation(
        "getApproval",
        "Fetch an approval, or wait for its decision",
        Scope.DECISIONS_EVALUATE,
        ApprovalDetailSerializer,
        description=openapi.SHOW_TEXT,
        parameters=[openapi.WAIT],
        examples=[openapi.DECIDED],
        e404=ApprovalNotFound.message,
    )
    def retrieve(self, request: ApiRequest, approval_id: str) -> Response:
        approval = services.when_decided(
            tenant_id=request.auth.tenant_id,
            approval_id=approval_id,
            seconds=_read_wait(request.query_params),
            now=now(),
        )
        return ok(shown_detail(approval, now()))


def _read_wait(params: Mapping[str, str]) -> int:
    text = params.get("wait", "0")
    if text not in map(str, range(services.LONGEST_WAIT + 1)):
        raise Invalid(f"wait must be a whole number from 0 to {services.LONGEST_WAIT}")
    return int(text)
