"""`/v1/reports`: request a report, poll it, read it as JSON or PDF."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework.response import Response

from auditlog.actors.requests import caller_of, record_taken
from auditlog.vocabulary import Actor, AuditAction
from compliance.api.gate import Scope
from compliance.api.pagination import newest_first, ok, read_choice
from compliance.api.rest.requests import ApiRequest
from compliance.api.rest.views import ApiViewSet, listing, operation, validated
from reports import services
from reports.bundles.archive import file_of
from reports.content import builder
from reports.errors import ReportFailed, ReportGenerating, ReportNotFound
from reports.models import Report
from reports.serializers import (
    ReportDocumentSerializer,
    ReportManifestSerializer,
    ReportSerializer,
    RequestReportSerializer,
    shown_manifest,
)
from reports.vocabulary import ReportStatus, ReportType

NOT_FOUND: dict[str, Any] = {"e404": ReportNotFound.message}
NOT_READY: dict[str, Any] = {
    **NOT_FOUND,
    "e422": ReportFailed.message,
    "e425": ReportGenerating.message,
}
REQUEST_EXAMPLE = OpenApiExample(
    "A quarter",
    request_only=True,
    value={"type": "eu_ai_act", "period_start": "2026-07-01", "period_end": "2026-09-30"},
)

MANIFEST_EXAMPLE = OpenApiExample(
    "A signed manifest",
    response_only=True,
    status_codes=["200"],
    value={
        "data": {
            "manifest": {
                "format": "report-manifest/1",
                "report_id": "019ac2f0-5a5e-7c3e-9d4b-3f6f0f1f2a10",
                "type": "eu_ai_act",
                "environment": "live",
                "tenant_id": "019ac2f0-0000-7000-8000-000000000001",
                "period_start": "2026-07-01T00:00:00Z",
                "period_end": "2026-10-01T00:00:00Z",
                "covered_until": "2026-10-01T00:00:00Z",
                "generated_at": "2026-10-01T01:00:02Z",
                "model_versions": ["3.0"],
                "files": [{"name": "report.json", "bytes": 20480, "sha256": "9f86d081884c7d65" * 4}],
                "audit_log_checkpoint": None,
                "key": {"algorithm": "Ed25519", "sha256": "2c26b46b68ffc68f" * 4},
            },
            "signature": "tN0\u2026Bw==",
            "public_key": "-----BEGIN PUBLIC KEY-----\n\u2026\n-----END PUBLIC KEY-----\n",
        }
    },
)


class ReportViewSet(ApiViewSet):
    """The tenant's reports."""

    schema_tag = "Reports"

    @operation(
        "requestReport",
        "Ask for a compliance report",
        Scope.REPORTS_WRITE,
        ReportSerializer,
        status=202,
        description=(
            "States which records exist for each provision, and which do not; never a verdict. Poll `GET "
            "/v1/reports/{id}` until it no longer answers 425. A period that has not ended is refused. The "
            "same request answers the report that is under way; 429 while ten of the tenant are."
        ),
        request=RequestReportSerializer,
        examples=[REQUEST_EXAMPLE],
        repeats=True,
        e404="Agent not found",
    )
    def create(self, request: ApiRequest) -> Response:
        report = services.request_report(
            **validated(RequestReportSerializer, request),
            **caller_of(request),
        )
        return ok(ReportSerializer(report).data, status=202)

    @listing(
        "listReports",
        "List reports, newest first",
        Scope.REPORTS_READ,
        ReportSerializer,
        parameters=[
            OpenApiParameter("type", OpenApiTypes.STR, enum=ReportType.values),
            OpenApiParameter("status", OpenApiTypes.STR, enum=ReportStatus.values),
        ],
    )
    def list(self, request: ApiRequest) -> Response:
        params = request.query_params
        reports = Report.objects.for_tenant(request.auth.tenant_id).where(
            type=read_choice(params, "type", ReportType.values),
            status=read_choice(params, "status", ReportStatus.values),
        )
        return newest_first(reports.without_files(), request, ReportSerializer.all_of, field="created_at")

    @operation(
        "getReport",
        "Follow a report",
        Scope.REPORTS_READ,
        ReportSerializer,
        description="425 with `Retry-After` until it is `ready` or `failed`; the list shows it meanwhile.",
        **NOT_FOUND,
        e425=ReportGenerating.message,
    )
    def retrieve(self, request: ApiRequest, report_id: str) -> Response:
        report = Report.objects.for_tenant(request.auth.tenant_id).without_files().find(report_id)
        return ok(ReportSerializer(services.finished(report)).data)

    @operation(
        "getReportDocument",
        "Read a report as JSON",
        Scope.REPORTS_READ,
        ReportDocumentSerializer,
        description=(
            "`digest.value` is the SHA-256 of `report` in canonical JSON; `GET /v1/reports/schema` describes "
            "it."
        ),
        **NOT_READY,
    )
    def document(self, request: ApiRequest, report_id: str) -> Response:
        report = _taken(request, report_id, "json")
        digest = {"algorithm": "SHA-256", "canonicalization": "RFC 8785", "value": report.digest}
        return ok({"report": report.content, "digest": digest})

    @operation(
        "getReportPdf",
        "Read a report as PDF",
        Scope.REPORTS_READ,
        {(200, "application/pdf"): OpenApiResponse(OpenApiTypes.BINARY, "The report for people")},
        **NOT_READY,
    )
    def pdf(self, request: ApiRequest, report_id: str) -> HttpResponse:
        report = _taken(request, report_id, "pdf")
        answer = file_of(report, "pdf")
        answer["ETag"] = f'"{report.digest}"'
        return answer

    @operation(
        "getReportManifest",
        "Read a report's signed manifest",
        Scope.REPORTS_READ,
        ReportManifestSerializer,
        description=(
            "The digests of the report's files, its period, the versions of the scorer and the audit log's "
            "checkpoint. `signature` is Ed25519 over the canonical JSON of `manifest`, by a key of the audit "
            "log."
        ),
        examples=[MANIFEST_EXAMPLE],
        **NOT_READY,
    )
    def manifest(self, request: ApiRequest, report_id: str) -> Response:
        found = Report.objects.for_tenant(request.auth.tenant_id).without_files()
        return ok(shown_manifest(services.signed(found.find(report_id))))

    @operation(
        "getReportBundle",
        "Download a report with all that proves it",
        Scope.REPORTS_READ,
        {(200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY, "The bundle")},
        description=(
            "A ZIP of JSON, PDF, the lists of rows, manifest, signature and public key, which `openssl` "
            "checks without this service; the PDF prints the commands."
        ),
        **NOT_READY,
    )
    def bundle(self, request: ApiRequest, report_id: str) -> HttpResponse:
        return file_of(_taken(request, report_id, "zip"), "zip")

    @operation(
        "getReportSchema",
        "Read the JSON Schema of reports",
        Scope.REPORTS_READ,
        {(200, "application/schema+json"): OpenApiResponse(OpenApiTypes.OBJECT, "The schema")},
        description="JSON Schema (draft 2020-12) of `report` in `GET /v1/reports/{id}/json`.",
    )
    def document_schema(self, request: ApiRequest) -> HttpResponse:
        return HttpResponse(builder.SCHEMA_TEXT, content_type="application/schema+json")


def _taken(request: ApiRequest, report_id: str, kind: str) -> Report:
    """Return a report that is ready, for a file of it (`json`, `pdf`, `zip`), and audit that it was taken."""
    columns = {"json": ["document"], "pdf": ["pdf"], "zip": ["document", "pdf", "evidence"]}[kind]
    found = Report.objects.for_tenant(request.auth.tenant_id).without_files(*columns).find(report_id)
    report = services.signed(found) if kind == "zip" else services.ready(found)
    record_taken(
        actor=Actor.api_key(request.auth.id),
        action=AuditAction.REPORT_DOWNLOADED,
        of=report,
        description=f"Report downloaded as {kind.upper()}",
        format=kind,
    )
    return report
