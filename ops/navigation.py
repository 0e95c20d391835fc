"""The whole navigation: the pages without a table before and after the rooms' groups."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from compliance.console import navigation
from compliance.console.access import access_of


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return Unfold's navigation for the user."""
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
