"""Every route of the service; each room brings its own."""

from django.urls import include, path

from compliance.api import exceptions, health
from compliance.api.rest.description import DescriptionView, DocumentationView
from compliance.console.views import lead, to_environment
from ops.gauges import metrics_view

# Patterns are tried one after the other: the rooms that are asked most come first.
ROOMS = [
    *("events", "certificates", "agents", "delegation", "webhooks", "auditlog"),
    "gateway",
    *("incidents", "reports"),
    "signals",
]

urlpatterns = [
    *[path("", include(f"{room}.urls")) for room in ROOMS],
    path("v1/schema", DescriptionView.as_view(), name="schema"),
    path("v1/docs", DocumentationView.as_view(url_name="schema"), name="docs"),
    path("health/live", health.LiveView.as_view()),
    path("health/ready", health.ReadyView.as_view()),
    path("metrics", metrics_view),
    # Only for `reverse` outside a request: the console's middleware routes its requests.
    path("admin/live/", include("ops.console_urls")),
    path("", lead, {"to": "/admin/"}),
    path("docs", lead, {"to": "/v1/docs"}),
    path("admin", lead, {"to": "/admin/"}),
    path("admin/", to_environment),
    path("admin/<path:page>", to_environment),
]

handler400 = exceptions.bad_request
handler403 = exceptions.forbidden
handler404 = exceptions.not_found
handler500 = exceptions.server_error
