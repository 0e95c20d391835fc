"""The audit log in the console: read-only, newest first, each entry linked to the row it concerns."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from auditlog.models import AuditEntry
from auditlog.vocabulary import SERVICE_TENANT_ID
from compliance.console import filters
from compliance.console.admin import TenantScopedAdmin
from compliance.console.context import registered
from compliance.console.display import EMPTY, chip, code, pretty_json, short_code, visible
from compliance.core.identifiers import parse_id

# The model whose page shows the affected row, by the part of an action before its dot.
PAGES = {
    "agent": "agents_agent",
    "api_key": "tenancy_apikey",
    "certificate": "certificates_certificate",
    "delegation": "agents_agent",
    "event": "events_behaviorevent",
    "membership": "tenancy_membership",
    "message": "agents_agent",
    "report": "reports_report",
    "simulation": "events_simulation",
    "tenant": "tenancy_tenant",
    "webhook": "webhooks_webhook",
}
TONES = {
    **dict.fromkeys(("revoked", "suspended", "high_risk"), "danger"),
    **dict.fromkeys(("held", "retired", "deleted"), "warning"),
}


def linked(entry: AuditEntry, shown: str) -> str:
    """Link `shown` to the page of the affected row, if it has one."""
    model = PAGES.get(entry.event_type.partition(".")[0])
    if model is None or registered(model) is None or parse_id(entry.affected_id) is None:
        return shown
    url = reverse(f"admin:{model}_change", args=[entry.affected_id])
    return format_html('<a class="text-link" href="{}">{}</a>', url, shown)


@admin.register(AuditEntry)
class AuditEntryAdmin(TenantScopedAdmin):
    """Every state change, with its actor."""

    related_links = ()
    list_display = ("created_at", "action", "description_shown", "short_actor", "tenant", "short_affected")
    list_filter = (
        ("event_type", filters.ChoicesDropdownFilter),
        ("actor_type", filters.ChoicesDropdownFilter),
        filters.tenant_filter(),
        ("created_at", filters.RangeDateTimeFilter),
    )
    search_fields = ("actor_id__exact", "affected_id__exact", "description")
    search_help_text = "Actor, affected ID or words"
    search_ids = ("affected_id",)
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-id")
    paginator = InfinitePaginator
    show_full_result_count = False
    fieldsets = (
        (None, {"fields": ("created_at", "action", "description_shown", "tenant")}),
        ("Actor", {"fields": ("actor_type", "actor")}),
        ("Affected", {"fields": ("affected", "metadata_json")}),
        ("Entry", {"fields": ("identifier",)}),
    )
    readonly_fields = (
        *("action", "description_shown", "tenant", "actor", "affected", "metadata_json", "identifier"),
    )

    actor = display(lambda self, entry: code(entry.actor_id), description="actor")
    short_actor = display(
        lambda self, row: short_code(row.actor_id), description="actor", ordering="actor_id"
    )
    affected = display(lambda self, entry: linked(entry, code(entry.affected_id)), description="affected")
    short_affected = display(
        lambda self, row: linked(row, short_code(row.affected_id)), description="affected"
    )
    description_shown = display(
        lambda self, row: visible(row.description or EMPTY), description="description"
    )
    metadata_json = display(lambda self, entry: pretty_json(entry.metadata), description="metadata")
    identifier = display(lambda self, entry: code(entry.pk), description="ID")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return filters.with_tenant_name(super().get_queryset(request))

    @display(description="action", ordering="event_type")
    def action(self, entry: AuditEntry) -> str:
        return chip(entry.event_type, TONES.get(entry.event_type.partition(".")[2], "default"), verbatim=True)

    @display(description="tenant")
    def tenant(self, entry: Any) -> str:
        if entry.tenant_id == SERVICE_TENANT_ID:
            return "The service"
        return visible(entry.tenant_name or entry.tenant_id)
