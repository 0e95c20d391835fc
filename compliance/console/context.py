"""What every page of the console shows: the environment with its switch, and the navigation."""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from compliance.console.access import access_of
from compliance.console.actions import ENVIRONMENT_FIELD
from compliance.environments import Environment


@dataclass(frozen=True)
class Entry:
    """A line of the navigation: `model` is `app_model`, in the lower case of URL names."""

    label: str
    icon: str
    model: str


# A line shows when its page exists and the user may see it.
NAVIGATION: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Agents",
        (
            Entry("Agents", "smart_toy", "agents_agent"),
            Entry("Certificates", "workspace_premium", "certificates_certificate"),
            Entry("Events", "timeline", "events_behaviorevent"),
        ),
    ),
    (
        "Evidence",
        (
            Entry("Audit log", "history", "auditlog_auditentry"),
            Entry("Reports", "summarize", "reports_report"),
        ),
    ),
    (
        "Integration",
        (
            Entry("Webhooks", "webhook", "webhooks_webhook"),
            Entry("Deliveries", "outbox", "webhooks_delivery"),
            Entry("API keys", "key", "tenancy_apikey"),
        ),
    ),
    (
        "Trust",
        (
            Entry("Authorities", "account_balance", "certificates_certificateauthority"),
            Entry("Revocation lists", "playlist_remove", "certificates_revocationlist"),
            Entry("OCSP responders", "vpn_key", "certificates_ocspresponder"),
            Entry("Issuances", "draw", "certificates_issuance"),
            Entry("Token keys", "vpn_key", "delegation_tokenkey"),
        ),
    ),
    (
        "Access",
        (
            Entry("Tenants", "apartment", "tenancy_tenant"),
            Entry("Memberships", "badge", "tenancy_membership"),
            Entry("Users", "person", "auth_user"),
            Entry("Groups", "group", "auth_group"),
        ),
    ),
)


def registered(name: str) -> Any:
    """The page of the model `app_model`; None where there is none."""
    pages = admin.site._registry.items()
    return next(
        (page for model, page in pages if f"{model._meta.app_label}_{model._meta.model_name}" == name), None
    )


def may_see(request: HttpRequest, name: str) -> bool:
    """Whether the page of `app_model` exists and is open to the user."""
    page = registered(name)
    return page is not None and bool(page.has_view_permission(request))


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Unfold's navigation for this user."""
    overview = {"title": "Overview", "icon": "dashboard", "link": reverse("admin:index")}
    groups: list[dict[str, Any]] = [{"title": "", "items": [overview]}]
    for title, entries in NAVIGATION:
        items = [
            {"title": entry.label, "icon": entry.icon, "link": reverse(f"admin:{entry.model}_changelist")}
            for entry in entries
            if may_see(request, entry.model)
        ]
        if items:
            groups.append({"title": title, "separator": True, "items": items})
    return groups


def environment_of_page(request: HttpRequest) -> dict[str, Any]:
    """Template variables of every page: which environment it shows, and the other to switch to."""
    access = access_of(request)
    other = Environment.TEST if access.environment is Environment.LIVE else Environment.LIVE
    return {
        "console": access,
        "console_is_live": access.environment is Environment.LIVE,
        "console_other": other,
        "console_environment_field": ENVIRONMENT_FIELD,
        "console_may_switch": bool(access.is_operator or access.roles),
    }


def title_prefix(request: HttpRequest) -> str | None:
    """What stands before the browser tab's title: the sandbox is told from live there, too."""
    return None if access_of(request).environment is Environment.LIVE else "[TEST]"
