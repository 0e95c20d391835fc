"""Every route of the service; each room brings its own."""

from django.contrib import admin
from django.urls import include, path

from compliance.api import exceptions, health
from compliance.api.rest.description import DescriptionView, DocumentationView
from compliance.console.views import switch_environment
from compliance.ops.dashboard import overview

# Patterns are tried one after the other: the rooms that are asked most come first.
ROOMS = ["events", "certificates", "agents", "delegation", "webhooks", "auditlog", "compliance.reports"]

urlpatterns = [
    *[path("", include(f"{room}.urls")) for room in ROOMS],
    path("v1/schema", DescriptionView.as_view(), name="schema"),
    path("v1/docs", DocumentationView.as_view(url_name="schema"), name="docs"),
    path("health/live", health.LiveView.as_view()),
    path("health/ready", health.ReadyView.as_view()),
    path("admin/environment/", switch_environment, name="console_environment"),
    path("admin/overview/", admin.site.admin_view(overview), name="console_overview"),
    path("admin/", admin.site.urls),
]

handler400 = exceptions.bad_request
handler403 = exceptions.forbidden
handler404 = exceptions.not_found
handler500 = exceptions.server_error
