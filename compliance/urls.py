"""Every route of the service; each room brings its own."""

from django.urls import include, path

from compliance.api import exceptions, health
from compliance.api.rest.description import DescriptionView, DocumentationView
from compliance.console.views import to_environment
from compliance.ops.metrics_view import metrics_view

# Patterns are tried one after the other: the rooms that are asked most come first.
ROOMS = [
    *(
        "events",
        "certificates",
        "agents",
        "delegation",
        "delegation.oauth",
        "delegation.issuers",
        "webhooks",
        "auditlog",
    ),
    "compliance.gateway",
    *("compliance.incidents", "compliance.reports", "compliance.reports.notifications"),
    "compliance.signals",
]

urlpatterns = [
    *[path("", include(f"{room}.urls")) for room in ROOMS],
    path("v1/schema", DescriptionView.as_view(), name="schema"),
    path("v1/docs", DocumentationView.as_view(url_name="schema"), name="docs"),
    path("health/live", health.LiveView.as_view()),
    path("health/ready", health.ReadyView.as_view()),
    path("metrics", metrics_view),
    # Only for `reverse` outside a request: the console's middleware routes its requests.
    path("admin/live/", include("compliance.ops.console_urls")),
    path("admin/", to_environment),
    path("admin/<path:page>", to_environment),
]

handler400 = exceptions.bad_request
handler403 = exceptions.forbidden
handler404 = exceptions.not_found
handler500 = exceptions.server_error
