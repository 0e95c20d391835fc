"""The routes of incidents."""

from django.urls import path

from incidents.views import IncidentViewSet

urlpatterns = [
    path("v1/incidents", IncidentViewSet.as_view({"get": "list"})),
    path(
        "v1/incidents/<str:incident_id>",
        IncidentViewSet.as_view({"get": "retrieve", "patch": "partial_update"}),
    ),
]
