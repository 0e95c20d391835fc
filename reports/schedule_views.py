"""`/v1/report-schedules`: a report of each month or quarter, without asking for it."""

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from auditlog.actors.requests import caller_of
from auditlog.vocabulary import Actor
from compliance.api.gate import Scope
from compliance.api.pagination import newest_first, ok
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from compliance.core.clock import now
from reports import scheduling
from reports.errors import PeriodReported, ScheduleEnded, ScheduleExists, ScheduleNotFound
from reports.models import ReportSchedule
from reports.serializers import CreateScheduleSerializer, ReportScheduleSerializer, UpdateScheduleSerializer

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

    @operation(
        "createReportSchedule",
        "Have a report made of each month or quarter",
        Scope.REPORTS_WRITE,
        ReportScheduleSerializer,
        status=201,
        description=(
            "The first is of the period that is running; each is requested an hour after its period's end. "
            "While a schedule of the type and cadence lasts, it is answered instead of a second one."
        ),
        request=CreateScheduleSerializer,
        examples=[EXAMPLE],
        repeats=True,
    )
    def create(self, request: ApiRequest) -> Response:
        given = validated(CreateScheduleSerializer, request)
        made = scheduling.create_schedule(**given, **caller_of(request))
        return ok(ReportScheduleSerializer(made).data, status=201)

    @listing(
        "listReportSchedules",
        "List schedules of reports, newest first",
        Scope.REPORTS_READ,
        ReportScheduleSerializer,
        examples=[LISTED],
    )
    def list(self, request: ApiRequest) -> Response:
        return newest_first(
            ReportSchedule.objects.for_tenant(request.auth.tenant_id),
            request,
            ReportScheduleSerializer.all_of,
            field="created_at",
        )

    @operation(
        "getReportSchedule",
        "Fetch a schedule of reports",
        Scope.REPORTS_READ,
        ReportScheduleSerializer,
        examples=[EXAMPLE],
        e404=ScheduleNotFound.message,
    )
    def retrieve(self, request: ApiRequest, schedule_id: str) -> Response:
        found = ReportSchedule.objects.for_tenant(request.auth.tenant_id).find(schedule_id)
        return ok(ReportScheduleSerializer(found).data)

    @operation(
        "updateReportSchedule",
        "Change how often a schedule reports",
        Scope.REPORTS_WRITE,
        ReportScheduleSerializer,
        description=(
            "It goes on with the period of the new cadence that holds `next_start`. If a part of that period "
            "has its report already, end the schedule and create another."
        ),
        request=UpdateScheduleSerializer,
        examples=[EXAMPLE],
        e404=ScheduleNotFound.message,
        e409=ScheduleExists.message,
        e422=f"{ScheduleEnded.message}, or: {PeriodReported.message}",
    )
    def partial_update(self, request: ApiRequest, schedule_id: str) -> Response:
        given = validated(UpdateScheduleSerializer, request)
        changed = scheduling.change_schedule(schedule_id=schedule_id, **given, **caller_of(request))
        return ok(ReportScheduleSerializer(changed).data)

    @operation(
        "deleteReportSchedule",
        "End a schedule of reports",
        Scope.REPORTS_WRITE,
        status=204,
        description="It requests nothing more. It is still shown, with `ended_at`, and its reports stay.",
        e404=ScheduleNotFound.message,
        e422=ScheduleEnded.message,
    )
    def destroy(self, request: ApiRequest, schedule_id: str) -> Response:
        found = ReportSchedule.objects.for_tenant(request.auth.tenant_id).find(schedule_id)
        scheduling.end_schedule(schedule=found, actor=Actor.api_key(request.auth.id), now=now())
        return Response(status=204)
