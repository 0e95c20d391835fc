"""The routes of the console in one environment, and its navigation.

The middleware puts the routes under the environment's prefix.
"""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import include, path, reverse

from agents.models import Agent
from compliance.api import exceptions
from compliance.console import navigation
from compliance.console.access import access_of
from gateway.approvals import owner_links
from ops import dashboard, system
from ops.console import agent_page

admin.autodiscover()
admin.site.register(Agent, agent_page.AgentPageAdmin)

# The admin comes last: its last route matches everything.
urlpatterns = [
    path("", include("people.urls")),
    path("overview/", admin.site.admin_view(dashboard.overview), name="console_overview"),
    path("approve/<uuid:approval_id>/<str:token>/", owner_links.open_link, name="approval_link"),
    path("approve/<uuid:approval_id>/", owner_links.decide, name="approval_link_form"),
    path("system/", admin.site.admin_view(system.system_page), name="console_system"),
    path("", admin.site.urls),
]

handler400 = exceptions.bad_request
handler403 = exceptions.forbidden
handler404 = exceptions.not_found
handler500 = exceptions.server_error


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return Unfold's navigation for the user: pages without a table before and after the rooms' groups."""
    inbox = [reverse("admin:index"), reverse("admin:inbox_openevent_changelist")]
    first = [
        {"title": "Review inbox", "icon": "inbox", "link": inbox[0], "active": request.path in inbox},
        {"title": "Overview", "icon": "dashboard", "link": reverse("console_overview")},
    ]
    shown = [{"title": "", "items": first}, *navigation.groups(request)]
    if access_of(request).is_operator:
        system = {"title": "System", "icon": "monitor_heart", "link": reverse("console_system")}
        shown.append({"title": "Service", "separator": True, "items": [system]})
    return shown
