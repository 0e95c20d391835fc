"""The parts common to all pages: the navigation, and the environment with its switch."""

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.exceptions import NotRegistered
from django.http import HttpRequest
from django.urls import reverse

from compliance.console.access import access_of
from compliance.console.addresses import counterparts
from compliance.core.environments import Environment

# Label, icon and `app_model` of each page; a line shows if its page exists and the user may see it.
NAVIGATION = {
    "Agents": (
        ("Agents", "smart_toy", "agents_agent"),
        ("Certificates", "workspace_premium", "certificates_certificate"),
        ("Events", "timeline", "events_behaviorevent"),
        ("Incidents", "emergency_home", "incidents_incident"),
        ("Comments", "comment", "inbox_inboxcomment"),
        ("Simulate a policy", "flight_takeoff", "events_simulation"),
    ),
    "Evidence": (
        ("Audit log", "history", "auditlog_auditentry"),
        ("Tree and witnesses", "account_tree", "auditlog_treehead"),
        ("Reports", "summarize", "reports_report"),
        ("Report schedules", "event_repeat", "reports_reportschedule"),
    ),
    "Integration": (
        ("Webhooks", "webhook", "webhooks_webhook"),
        ("Deliveries", "outbox", "webhooks_delivery"),
        ("API keys", "key", "tenancy_apikey"),
    ),
    "Trust": (
        ("Authorities", "account_balance", "certificates_certificateauthority"),
        ("Revocation lists", "playlist_remove", "certificates_revocationlist"),
        ("OCSP responders", "vpn_key", "certificates_ocspresponder"),
        ("Issuances", "draw", "certificates_issuance"),
        ("Token keys", "vpn_key", "delegation_tokenkey"),
    ),
    "Access": (
        ("Tenants", "apartment", "tenancy_tenant"),
        ("Memberships", "badge", "tenancy_membership"),
        ("Users", "person", "auth_user"),
    ),
}


def registered(name: str) -> Any:
    """Return the page of the model `app_model`; None if there is none."""
    try:
        return admin.site.get_model_admin(apps.get_model(name.replace("_", ".", 1)))
    except (LookupError, NotRegistered):
        return None


def may_see(request: HttpRequest, name: str) -> bool:
    """Whether the page of `app_model` exists and the user may see it."""
    page = registered(name)
    return page is not None and bool(page.has_view_permission(request))


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return Unfold's navigation for the user."""
    inbox = [reverse("admin:index"), reverse("admin:inbox_openevent_changelist")]
    first = [
        {"title": "Review inbox", "icon": "inbox", "link": inbox[0], "active": request.path in inbox},
        {"title": "Overview", "icon": "dashboard", "link": reverse("console_overview")},
    ]
    groups: list[dict[str, Any]] = [{"title": "", "items": first}]
    for title, pages in NAVIGATION.items():
        items = [
            {
                "title": label,
                "icon": icon,
                "link": reverse(f"admin:{model}_changelist"),
                **_badge(request, model),
            }
            for label, icon, model in pages
            if may_see(request, model)
        ]
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    if access_of(request).is_operator:
        system = {"title": "System", "icon": "monitor_heart", "link": reverse("console_system")}
        groups.append({"title": "Service", "separator": True, "items": [system]})
    return groups


def _badge(request: HttpRequest, name: str) -> dict[str, int]:
    """Return the number that the page of `app_model` shows in the navigation, if it has one."""
    count = getattr(registered(name), "navigation_badge", lambda _: 0)(request)
    return {"badge": count} if count else {}


def environment_of_page(request: HttpRequest) -> dict[str, Any]:
    """Return the template variables of every page: its environment, and its counterparts in both."""
    access = access_of(request)
    is_live = access.environment is Environment.LIVE
    return {
        "console": access,
        "console_is_live": is_live,
        "console_counterparts": counterparts(request) if access.is_operator or access.roles else {},
    }


def title_prefix(request: HttpRequest) -> str | None:
    """Return the prefix of the browser tab's title, which marks the sandbox."""
    return None if access_of(request).environment is Environment.LIVE else "[TEST]"
