"""`/v1/report-schedules`: a report of each month or quarter, without asking for it."""

from typing import ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from auditlog.vocabulary import Actor
from compliance.api.gate import Scope
from compliance.api.idempotency import idempotent
from compliance.api.pagination import newest_first, ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.schema import BEFORE, IDEMPOTENCY_KEY, KEYED, LIMIT, enveloped, errors, paged
from compliance.api.rest.views import ApiViewSet, validated
from compliance.core.clock import now
from reports import scheduling
from reports.errors import PeriodReported, ScheduleEnded, ScheduleExists, ScheduleNotFound
from reports.models import ReportSchedule
from reports.serializers import CreateScheduleSerializer, ReportScheduleSerializer, UpdateScheduleSerializer

SCHEDULE_ID = OpenApiParameter("schedule_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)
SHOWN = {
    "id": "019ac2f0-5a5e-7c3e-9d4b-3f6f0f1f2a11",
    "type": "mica",
    "cadence": "month",
    "next_start": "2026-11-01T00:00:00Z",
    "created_at": "2026-11-23T10:00:00Z",
    "ended_at": None,
}
EXAMPLE = OpenApiExample("A monthly report", {"data": SHOWN}, response_only=True, status_codes=["200", "201"])
LISTED = OpenApiExample(
    "One schedule",
    {"data": [SHOWN], "next_cursor": None, "has_next_page": False},
    response_only=True,
    status_codes=["200"],
)


class ReportScheduleViewSet(ApiViewSet):
    """The tenant's schedules of reports, those that ended included."""

    schema_tag = "Reports"
    required_scopes: ClassVar = {
        "list": Scope.REPORTS_READ,
        "retrieve": Scope.REPORTS_READ,
        "create": Scope.REPORTS_WRITE,
        "partial_update": Scope.REPORTS_WRITE,
        "destroy": Scope.REPORTS_WRITE,
    }

    @extend_schema(
        operation_id="createReportSchedule",
        summary="Have a report made of each month or quarter",
        description=(
            "The first is of the period that is running; each is requested an hour after its period's end. "
            "While a schedule of the type and cadence lasts, it is answered instead of a second one."
        ),
        parameters=[IDEMPOTENCY_KEY],
        request=CreateScheduleSerializer,
        examples=[EXAMPLE],
        responses={201: enveloped(ReportScheduleSerializer), **errors(*KEYED, 409)},
    )
    @idempotent
    def create(self, request: ApiRequest) -> Response:
        given = validated(CreateScheduleSerializer, request)
        made = scheduling.create_schedule(**given, **caller_of(request))
        return ok(ReportScheduleSerializer(made).data, status=201)

    @extend_schema(
        operation_id="listReportSchedules",
        summary="List schedules of reports, newest first",
        parameters=[BEFORE, LIMIT],
        examples=[LISTED],
        responses={200: paged(ReportScheduleSerializer, tells_next=True), **errors(*KEYED)},
    )
    def list(self, request: ApiRequest) -> Response:
        return newest_first(
            ReportSchedule.objects.for_tenant(request.auth.tenant_id),
            request,
            ReportScheduleSerializer.all_of,
            field="created_at",
        )

    @extend_schema(
        operation_id="getReportSchedule",
        summary="Fetch a schedule of reports",
        parameters=[SCHEDULE_ID],
        examples=[EXAMPLE],
        responses={
            200: enveloped(ReportScheduleSerializer),
            **errors(*KEYED, e404=ScheduleNotFound.message),
        },
    )
    def retrieve(self, request: ApiRequest, schedule_id: str) -> Response:
        found = ReportSchedule.objects.for_tenant(request.auth.tenant_id).find(schedule_id)
        return ok(ReportScheduleSerializer(found).data)

    @extend_schema(
        operation_id="updateReportSchedule",
        summary="Change how often a schedule reports",
        description=(
            "It goes on with the period of the new cadence that holds `next_start`. If a part of that period "
            "has its report already, end the schedule and create another."
        ),
        parameters=[SCHEDULE_ID],
        request=UpdateScheduleSerializer,
        examples=[EXAMPLE],
        responses={
            200: enveloped(ReportScheduleSerializer),
            **errors(
                *KEYED,
                e404=ScheduleNotFound.message,
                e409=ScheduleExists.message,
                e422=f"{ScheduleEnded.message}, or: {PeriodReported.message}",
            ),
        },
    )
    def partial_update(self, request: ApiRequest, schedule_id: str) -> Response:
        given = validated(UpdateScheduleSerializer, request)
        changed = scheduling.change_schedule(schedule_id=schedule_id, **given, **caller_of(request))
        return ok(ReportScheduleSerializer(changed).data)

    @extend_schema(
        operation_id="deleteReportSchedule",
        summary="End a schedule of reports",
        description="It requests nothing more. It is still shown, with `ended_at`, and its reports stay.",
        parameters=[SCHEDULE_ID],
        responses={
            204: None,
            **errors(*KEYED, e404=ScheduleNotFound.message, e422=ScheduleEnded.message),
        },
    )
    def destroy(self, request: ApiRequest, schedule_id: str) -> Response:
        found = ReportSchedule.objects.for_tenant(request.auth.tenant_id).find(schedule_id)
        scheduling.end_schedule(schedule=found, actor=Actor.api_key(request.auth.id), now=now())
        return Response(status=204)
