"""`/v1/otlp`: spans in, and the names in them."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.renderers import BaseRenderer
from rest_framework.response import Response

from agents.errors import AgentNotFound
from auditlog.actors.requests import caller_of
from compliance.api.gate import Scope
from compliance.api.pagination import ok
from compliance.api.rate_limits import cost_of, hit, sender_of
from compliance.api.rest import fields
from compliance.api.rest.renderers import FastJSONRenderer
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import enveloped
from compliance.api.rest.throttling import body_octets, count_the_rest
from compliance.api.rest.views import ApiViewSet, operation, validated
from compliance.core import environments
from compliance.core.clock import now
from events.otlp import services, transport
from events.otlp.models import MAX_NAME, NameSource, TracedName, TracedNameNotFound
from events.otlp.reading import TraceExport

MOST_REASONS = 5
SPAN = {
    "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "kind": 1,
    "name": "execute_tool place_order",
    "startTimeUnixNano": "1795975200000000000", "endTimeUnixNano": "1795975200250000000",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.name", "value": {"stringValue": "place_order"}},
    ],
}  # fmt: skip
SERVICE = {"attributes": [{"key": "service.name", "value": {"stringValue": "trading-desk"}}]}
EXPORT = {"resourceSpans": [{"resource": SERVICE, "scopeSpans": [{"spans": [SPAN]}]}]}
EXAMPLE = OpenApiExample("A tool call", request_only=True, media_type=transport.JSON, value=EXPORT)
_PARTIAL: dict[str, Any] = {"rejectedSpans": serializers.CharField(), "errorMessage": serializers.CharField()}
_STATUS: dict[str, Any] = {"code": serializers.IntegerField(), "message": serializers.CharField()}
PARTIAL = inline_serializer("ExportTracePartialSuccess", _PARTIAL, required=False)
RESPONSE = inline_serializer("ExportTraceServiceResponse", {"partialSuccess": PARTIAL})
STATUS = inline_serializer("RpcStatus", _STATUS)


class TraceViewSet(ApiViewSet):
    """OTLP's receiver of traces."""

    schema_tag = "OpenTelemetry"
    required_scopes: ClassVar = {"create": Scope.EVENTS_WRITE}
    bucket = "events"
    parser_classes = (transport.ProtobufParser, transport.JSONParser)

    def get_renderers(self) -> list[BaseRenderer]:
        is_protobuf = self.request.content_type.lower().startswith(transport.PROTOBUF)
        return [transport.ProtobufRenderer() if is_protobuf else FastJSONRenderer()]

    def get_exception_handler(self) -> Callable[..., Response | None]:
        return transport.handle

    @extend_schema(
        operation_id="exportTraces",
        summary="Record the spans of agents as events",
        description=(
            "OTLP/HTTP, as protobuf or JSON, also with `Content-Encoding: gzip`. Spans of tool calls, and of "
            "HTTP and database clients below an agent's or a tool's, become events; others are accepted and "
            "left out. A span counts once, however often it is sent. Limits count events, as for a batch."
        ),
        request={transport.PROTOBUF: OpenApiTypes.BINARY, transport.JSON: OpenApiTypes.OBJECT},
        examples=[EXAMPLE],
        responses={200: RESPONSE, **dict.fromkeys((400, 401, 403, 405, 413, 415, 429, 503), STATUS)},
    )
    def create(self, request: ApiRequest) -> HttpResponseBase:
        export = request.data if isinstance(request.data, TraceExport) else TraceExport([], 0)
        charge = partial(self._count, request, export.octets)
        refused = services.record(
            tenant_id=request.auth.tenant_id, spans=export.spans, charge=charge, clock=now
        )
        if refused:
            reasons = [f"{reason} ({count})" for reason, count in refused.most_common(MOST_REASONS)]
            said = {"rejectedSpans": str(refused.total()), "errorMessage": "; ".join(reasons)}
            return Response({"partialSuccess": said})
        # REST framework would leave out the type of protobuf's empty message.
        whole = b"{}" if request.accepted_renderer.media_type == transport.JSON else b""
        return HttpResponse(whole, content_type=request.accepted_renderer.media_type)

    def _count(self, request: ApiRequest, octets: int, events: int) -> None:
        """Count what the request holds against the limits; its body as it was sent has been."""
        sent = body_octets(request)
        if octets > sent:
            quota = hit(*sender_of(environments.current(), request.auth), cost=octets - sent)
            if not quota.allowed:
                request.rate_limit = quota  # type: ignore[attr-defined]
                self.throttled(request, quota.retry_after)
        count_the_rest(request, "events", max(events, cost_of(octets, "events")))


class MapNameSerializer(fields.ClosedSerializer):
    """A name in spans and the agent it stands for."""

    source = serializers.ChoiceField(  # type: ignore[assignment]
        NameSource.choices, help_text="The attribute that holds the name."
    )
    name = fields.StrictCharField(max_length=MAX_NAME)
    agent_id = fields.IdField()


class TracedNameSerializer(serializers.ModelSerializer[TracedName]):
    """A name in spans."""

    agent_id = serializers.UUIDField(allow_null=True, help_text="Null: spans of this name are refused.")

    class Meta:
        model = TracedName
        fields = ("id", "source", "name", "agent_id", "seen_at")


MAPPING = {
    "source": "service.name",
    "name": "trading-desk",
    "agent_id": "0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f",
}
MAP = OpenApiExample("A service's only agent", request_only=True, value=MAPPING)


class TracedNameViewSet(ApiViewSet):
    """The names in spans that stand for agents, and those met that stand for none."""

    schema_tag = "OpenTelemetry"

    @operation(
        "listTracedNames",
        "List names in spans, those without an agent first",
        Scope.AGENTS_READ,
        enveloped(TracedNameSerializer, many=True),
        description="Of names without an agent the 100 met last are kept.",
    )
    def list(self, request: ApiRequest) -> Response:
        rows = TracedName.objects.for_tenant(request.auth.tenant_id)
        return ok(TracedNameSerializer(rows, many=True).data)

    @operation(
        "mapTracedName",
        "Have a name in spans stand for an agent",
        Scope.AGENTS_WRITE,
        TracedNameSerializer,
        status=201,
        request=MapNameSerializer,
        examples=[MAP],
        repeats=True,
        e404=AgentNotFound.message,
    )
    def create(self, request: ApiRequest) -> Response:
        given = validated(MapNameSerializer, request)
        return ok(TracedNameSerializer(services.create(**given, **caller_of(request))).data, status=201)

    @operation(
        "deleteTracedName",
        "Have a name in spans stand for no agent",
        Scope.AGENTS_WRITE,
        status=204,
        e404=TracedNameNotFound.message,
    )
    def destroy(self, request: ApiRequest, name_id: str) -> Response:
        services.delete(name_id=name_id, **caller_of(request))
        return Response(status=204)
