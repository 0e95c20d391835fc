"""`/v1/stops`: stop all agents of a kind at once."""

from rest_framework.response import Response

from agents.errors import AgentNotFound, BlueprintNotFound
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import newest_first, ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import enveloped
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from compliance.core.clock import now
from delegation.stops import openapi, services
from delegation.stops.models import UNFINISHED, KindStop, StopNotFound, StopNotReleasable, StopUnderWay
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

    @operation(
        "stopAgents",
        "Stop all agents of a kind at once",
        Scope.CERTIFICATES_REVOKE,
        dict.fromkeys((200, 201, 202), enveloped(BegunStopSerializer)),
        description=openapi.BEGIN_TEXT,
        request=BeginStopSerializer,
        examples=[openapi.QUESTION],
        repeats=True,
        e404=f"{AgentNotFound.message}; {BlueprintNotFound.message}",
    )
    def create(self, request: ApiRequest) -> Response:
        given, caller = validated(BeginStopSerializer, request), caller_of(request)
        if given.pop("dry_run"):
            stop, found = services.foreseen(**given, **caller)
            more = {"id": None, "state": None, "dry_run": True}
            sample = MatchedAgentSerializer(found[:SAMPLE], many=True).data
            return ok({**StopSerializer(stop).data, **more, "sample": sample})
        stop = services.work(stop=services.begin(**given, **caller), now=caller["now"])
        status = 202 if stop.state in UNFINISHED else 201
        return ok({**StopSerializer(stop).data, "dry_run": False, "sample": []}, status=status)

    @listing("listStops", "List stops, newest first", Scope.AGENTS_READ, StopSerializer)
    def list(self, request: ApiRequest) -> Response:
        own = KindStop.objects.for_tenant(request.auth.tenant_id)
        return newest_first(own, request, StopSerializer.all_of, field="started_at")

    @operation("getStop", "Fetch a stop", Scope.AGENTS_READ, StopSerializer, e404=StopNotFound.message)
    def retrieve(self, request: ApiRequest, stop_id: str) -> Response:
        return ok(StopSerializer(_find(request, stop_id)).data)

    @operation(
        "releaseStop",
        "Lift the holds of a stop",
        Scope.AGENTS_REINSTATE,
        dict.fromkeys((200, 202), enveloped(StopSerializer)),
        description=openapi.RELEASE_TEXT,
        request=StopReleaseSerializer,
        e404=StopNotFound.message,
        e422=StopNotReleasable.message,
    )
    def release(self, request: ApiRequest, stop_id: str) -> Response:
        reason, caller = validated(StopReleaseSerializer, request)["reason"], caller_of(request)
        stop = services.release(stop_id=stop_id, reason=reason, **caller)
        stop = services.work(stop=stop, now=caller["now"])
        return ok(StopSerializer(stop).data, status=202 if stop.state in UNFINISHED else 200)

    @operation(
        "getHaltReceipt",
        "Fetch the signed receipt of a stop",
        Scope.AGENTS_READ,
        HaltReceiptSerializer,
        description=openapi.RECEIPT_TEXT,
        examples=[openapi.RECEIPT],
        e404=StopNotFound.message,
        e425=StopUnderWay.message,
        e503="KMS signing service unavailable",
    )
    def receipt(self, request: ApiRequest, stop_id: str) -> Response:
        stop = _find(request, stop_id)
        receipt = services.receipt_of(stop, now=now())
        return ok({"receipt": receipt, "lines": services.lines_of(stop)})


def _find(request: ApiRequest, stop_id: str) -> KindStop:
    return KindStop.objects.for_tenant(request.auth.tenant_id).find(stop_id)
