"""Compliance reports."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agentid.client import answers
from agentid.client.operation import Group, S, listing, operation
from agentid.client.records import Page
from agentid.client.request import Request, as_json, given, path
from agentid.client.results.reports import Report, ReportDocument, ReportManifest


class Reports(Group[S]):
    """Compliance reports."""

    @listing("listReports")
    def list(
        self,
        *,
        before: datetime | str | None = None,
        limit: int | None = None,
        status: str | None = None,
        type_: str | None = None,
    ) -> Request[Page[Report]]:
        """List reports, newest first."""
        return Request(
            "GET",
            "/v1/reports",
            answers.page(Report),
            query=given(before=before, limit=limit, status=status, type=type_),
        )

    @operation("requestReport")
    def request(
        self,
        *,
        type_: str,
        period_start: str,
        period_end: str,
        agent_ids: Sequence[str] | None = None,
        idempotency_key: str = "",
    ) -> Request[Report]:
        """Ask for a compliance report."""
        return Request(
            "POST",
            "/v1/reports",
            answers.data(Report),
            **as_json(
                given(type=type_, period_start=period_start, period_end=period_end, agent_ids=agent_ids)
            ),
            key=idempotency_key,
        )

    @operation("getReport")
    def get(self, report_id: str) -> Request[Report]:
        """Follow a report."""
        return Request("GET", path("/v1/reports/{}", report_id), answers.data(Report))

    @operation("getReportBundle")
    def bundle(self, report_id: str) -> Request[bytes]:
        """Download a report with all that proves it."""
        return Request(
            "GET",
            path("/v1/reports/{}/bundle", report_id),
            answers.octets,
            headers={"Accept": "application/zip"},
        )

    @operation("getReportDocument")
    def document(self, report_id: str) -> Request[ReportDocument]:
        """Read a report as JSON."""
        return Request("GET", path("/v1/reports/{}/json", report_id), answers.data(ReportDocument))

    @operation("getReportManifest")
    def manifest(self, report_id: str) -> Request[ReportManifest]:
        """Read a report's signed manifest."""
        return Request("GET", path("/v1/reports/{}/manifest", report_id), answers.data(ReportManifest))

    @operation("getReportPdf")
    def pdf(self, report_id: str) -> Request[bytes]:
        """Read a report as PDF."""
        return Request(
            "GET",
            path("/v1/reports/{}/pdf", report_id),
            answers.octets,
            headers={"Accept": "application/pdf"},
        )

    @operation("getReportSchema")
    def schema(self) -> Request[Mapping[str, Any]]:
        """Read the JSON Schema of reports."""
        return Request(
            "GET", "/v1/reports/schema", answers.json_object, headers={"Accept": "application/schema+json"}
        )
