"""The route of the export of incidents."""

from django.urls import path

from compliance.reports.notifications.views import IncidentExportViewSet

urlpatterns = [
    path("v1/incidents/<str:incident_id>/export", IncidentExportViewSet.as_view({"get": "export"}))
]
