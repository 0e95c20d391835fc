"""The routes of reports, of attestations, and of the export of incidents."""

from django.urls import path

from reports.notifications.views import IncidentExportViewSet
from reports.schedule_views import ReportScheduleViewSet
from reports.standing.views import AttestationViewSet
from reports.views import ReportViewSet

urlpatterns = [
    path("v1/reports", ReportViewSet.as_view({"get": "list", "post": "create"})),
    path("v1/reports/schema", ReportViewSet.as_view({"get": "document_schema"})),
    path("v1/reports/<str:report_id>", ReportViewSet.as_view({"get": "retrieve"})),
    path("v1/reports/<str:report_id>/json", ReportViewSet.as_view({"get": "document"})),
    path("v1/reports/<str:report_id>/pdf", ReportViewSet.as_view({"get": "pdf"})),
    path("v1/reports/<str:report_id>/manifest", ReportViewSet.as_view({"get": "manifest"})),
    path("v1/reports/<str:report_id>/bundle", ReportViewSet.as_view({"get": "bundle"})),
    path("v1/agents/<str:agent_id>/attestation", AttestationViewSet.as_view({"get": "retrieve"})),
    path("v1/agents/<str:agent_id>/attestation/pdf", AttestationViewSet.as_view({"get": "pdf"})),
    path("v1/agents/<str:agent_id>/attestation/bundle", AttestationViewSet.as_view({"get": "bundle"})),
    path("v1/report-schedules", ReportScheduleViewSet.as_view({"get": "list", "post": "create"})),
    path(
        "v1/report-schedules/<str:schedule_id>",
        ReportScheduleViewSet.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
    ),
    path("v1/incidents/<str:incident_id>/export", IncidentExportViewSet.as_view({"get": "export"})),
]
