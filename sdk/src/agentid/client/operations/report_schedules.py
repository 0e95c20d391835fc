"""Reports that come by themselves."""

from datetime import datetime

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import UNSET, Request, Unset, as_json, changed, given, path
from agentid.client.results.report_schedules import ReportSchedule


class ReportSchedules(Group[S]):
    """Reports that come by themselves."""

    @listing("listReportSchedules")
    def list(
        self, *, before: datetime | str | None = None, limit: int | None = None
    ) -> Request[Page[ReportSchedule]]:
        """List schedules of reports, newest first."""
        return Request(
            "GET",
            "/v1/report-schedules",
            answers.page(ReportSchedule),
            query=given(before=before, limit=limit),
        )

    @operation("createReportSchedule")
    def create(self, *, type_: str, cadence: str, idempotency_key: str = "") -> Request[ReportSchedule]:
        """Have a report made of each month or quarter."""
        return Request(
            "POST",
            "/v1/report-schedules",
            answers.data(ReportSchedule),
            **as_json(given(type=type_, cadence=cadence)),
            key=idempotency_key,
        )

    @operation("getReportSchedule")
    def get(self, schedule_id: str) -> Request[ReportSchedule]:
        """Fetch a schedule of reports."""
        return Request("GET", path("/v1/report-schedules/{}", schedule_id), answers.data(ReportSchedule))

    @operation("updateReportSchedule")
    def update(self, schedule_id: str, *, cadence: str | Unset = UNSET) -> Request[ReportSchedule]:
        """Change how often a schedule reports."""
        return Request(
            "PATCH",
            path("/v1/report-schedules/{}", schedule_id),
            answers.data(ReportSchedule),
            **as_json(changed(cadence=cadence)),
        )

    @operation("deleteReportSchedule")
    def delete(self, schedule_id: str) -> Request[None]:
        """End a schedule of reports."""
        return Request(
            "DELETE", path("/v1/report-schedules/{}", schedule_id), answers.nothing, repeatable=True
        )
