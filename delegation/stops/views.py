"""`/v1/stops`: stop all agents of a kind at once."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from agents.errors import AgentNotFound, BlueprintNotFound
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.idempotency import idempotent
from compliance.api.pagination import newest_first, ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import BEFORE, IDEMPOTENCY_KEY, KEYED, LIMIT, enveloped, errors, paged
from compliance.api.rest.views import ApiViewSet, validated
from compliance.core.clock import now
from delegation.stops import openapi, receipts, services
from delegation.stops.errors import StopNotFound, StopNotReleasable, StopUnderWay
from delegation.stops.models import UNFINISHED, KindStop
from delegation.stops.serializers import (
    SAMPLE,
    BeginStopSerializer,
    BegunStopSerializer,
    HaltReceiptSerializer,
    MatchedAgentSerializer,
    StopReleaseSerializer,
    StopSerializer,
)


class StopViewSet(ApiViewSet):
    """The tenant's stops."""

    schema_tag = "Stops"
    required_scopes: ClassVar = {
        "list": Scope.AGENTS_READ,
        "retrieve": Scope.AGENTS_READ,
        "receipt": Scope.AGENTS_READ,
        "create": Scope.CERTIFICATES_REVOKE,
        "release": Scope.AGENTS_REINSTATE,
    }

    @extend_schema(
        operation_id="stopAgents",
        summary="Stop all agents of a kind at once",
        description=openapi.BEGIN_TEXT,
        parameters=[IDEMPOTENCY_KEY],
        request=BeginStopSerializer,
        examples=[openapi.QUESTION],
        responses={
            200: enveloped(BegunStopSerializer),
            201: enveloped(BegunStopSerializer),
            202: enveloped(BegunStopSerializer),
            **errors(*KEYED, 409, e404=f"{AgentNotFound.message}; {BlueprintNotFound.message}"),
        },
    )
    @idempotent
    def create(self, request: ApiRequest) -> Response:
        given = validated(BeginStopSerializer, request)
        is_dry = given.pop("dry_run")
        asked: dict[str, Any] = {**given, **caller_of(request)}
        if is_dry:
            stop, found = services.foreseen(**asked)
            sample = MatchedAgentSerializer(found[:SAMPLE], many=True).data
            return ok(
                {**StopSerializer(stop).data, "id": None, "state": None, "dry_run": True, "sample": sample}
            )
        stop = services.begin(**asked)
        services.work_at_once(stop=stop, now=asked["now"])
        status = 202 if stop.state in UNFINISHED else 201
        return ok({**StopSerializer(stop).data, "dry_run": False, "sample": []}, status=status)

    @extend_schema(
        operation_id="listStops",
        summary="List stops, newest first",
        parameters=[BEFORE, LIMIT],
        responses={200: paged(StopSerializer, tells_next=True), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        own = KindStop.objects.for_tenant(request.auth.tenant_id)
        return newest_first(own, request, StopSerializer.all_of, field="started_at")

    @extend_schema(
        operation_id="getStop",
        summary="Fetch a stop",
        parameters=[openapi.STOP_ID],
        responses={200: enveloped(StopSerializer), **errors(*KEYED, e404=StopNotFound.message)},
    )
    def retrieve(self, request: ApiRequest, stop_id: str) -> Response:
        return ok(StopSerializer(_find(request, stop_id)).data)

    @extend_schema(
        operation_id="releaseStop",
        summary="Lift the holds of a stop",
        description=openapi.RELEASE_TEXT,
        parameters=[openapi.STOP_ID],
        request=StopReleaseSerializer,
        responses={
            200: enveloped(StopSerializer),
            202: enveloped(StopSerializer),
            **errors(*KEYED, e404=StopNotFound.message, e422=StopNotReleasable.message),
        },
    )
    def release(self, request: ApiRequest, stop_id: str) -> Response:
        reason, caller = validated(StopReleaseSerializer, request)["reason"], caller_of(request)
        stop = services.release(stop_id=stop_id, reason=reason, **caller)
        services.work_at_once(stop=stop, now=caller["now"])
        return ok(StopSerializer(stop).data, status=202 if stop.state in UNFINISHED else 200)

    @extend_schema(
        operation_id="getHaltReceipt",
        summary="Fetch the signed receipt of a stop",
        description=openapi.RECEIPT_TEXT,
        parameters=[openapi.STOP_ID],
        examples=[openapi.RECEIPT],
        responses={
            200: enveloped(HaltReceiptSerializer),
            **errors(
                *KEYED,
                e404=StopNotFound.message,
                e425=StopUnderWay.message,
                e503="KMS signing service unavailable",
            ),
        },
    )
    def receipt(self, request: ApiRequest, stop_id: str) -> Response:
        stop = _find(request, stop_id)
        receipt = receipts.receipt_of(stop, now=now())
        return ok({"receipt": receipt, "lines": receipts.lines_of(stop)})


def _find(request: ApiRequest, stop_id: str) -> KindStop:
    return KindStop.objects.for_tenant(request.auth.tenant_id).find(stop_id)
