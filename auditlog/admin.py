"""The audit log in the console: read-only, newest first, each entry leading to what it tells of."""

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
from compliance.console import TenantScopedAdmin
from compliance.console.context import registered
from compliance.console.display import EMPTY, chip, code, pretty_json, short_code, visible
from compliance.console.filters import (
    ChoicesDropdownFilter,
    RangeDateTimeFilter,
    tenant_filter,
    with_tenant_name,
)
from compliance.identifiers import parse_id

# What the part of an action before its dot is kept as, where it has a page of its own.
PAGES = {
    "agent": "agents_agent",
    "api_key": "tenancy_apikey",
    "certificate": "certificates_certificate",
    "delegation": "agents_agent",
    "event": "events_behaviorevent",
    "membership": "tenancy_membership",
    "message": "agents_agent",
    "report": "reports_report",
    "tenant": "tenancy_tenant",
    "webhook": "webhooks_webhook",
}
TONES = {
    "revoked": "danger",
    "suspended": "danger",
    "high_risk": "danger",
    "held": "warning",
    "retired": "warning",
    "deleted": "warning",
}


def page_of(entry: AuditEntry) -> str | None:
    """The address of what the entry tells of; None where it has no page."""
    model = PAGES.get(entry.event_type.partition(".")[0])
    if model is None or registered(model) is None or parse_id(entry.affected_id) is None:
        return None
    return reverse(f"admin:{model}_change", args=[entry.affected_id])


def linked(url: str | None, shown: str) -> str:
    return format_html('<a class="text-link" href="{}">{}</a>', url, shown) if url else shown


@admin.register(AuditEntry)
class AuditEntryAdmin(TenantScopedAdmin):
    """Every state change, with who made it."""

    related_links = ()
    list_display = ("created_at", "action", "description_shown", "short_actor", "tenant", "short_affected")
    list_filter = (
        ("event_type", ChoicesDropdownFilter),
        ("actor_type", ChoicesDropdownFilter),
        tenant_filter(),
        ("created_at", RangeDateTimeFilter),
    )
    search_fields = ("actor_id__exact", "affected_id__exact", "description")
    search_help_text = "Actor, affected ID or words"
    search_ids = ("pk", "tenant_id")
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
        "action",
        "description_shown",
        "tenant",
        "actor",
        "affected",
        "metadata_json",
        "identifier",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return with_tenant_name(super().get_queryset(request))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """A pasted UUID is what an entry tells of; the column holds text."""
        if parse_id(search_term.strip()) is not None:
            return queryset.filter(affected_id=search_term.strip().lower()), False
        return super().get_search_results(request, queryset, search_term)

    @display(description="action", ordering="event_type")
    def action(self, entry: AuditEntry) -> str:
        return chip(entry.event_type, TONES.get(entry.event_type.partition(".")[2], "default"), verbatim=True)

    @display(description="description")
    def description_shown(self, entry: AuditEntry) -> str:
        return visible(entry.description) if entry.description else EMPTY

    @display(description="actor")
    def actor(self, entry: AuditEntry) -> str:
        return code(entry.actor_id)

    @display(description="tenant")
    def tenant(self, entry: Any) -> str:
        if entry.tenant_id == SERVICE_TENANT_ID:
            return "The service"
        return visible(entry.tenant_name or entry.tenant_id)

    @display(description="actor", ordering="actor_id")
    def short_actor(self, entry: AuditEntry) -> str:
        return short_code(entry.actor_id)

    @display(description="affected")
    def short_affected(self, entry: AuditEntry) -> str:
        return linked(page_of(entry), short_code(entry.affected_id))

    @display(description="affected")
    def affected(self, entry: AuditEntry) -> str:
        return linked(page_of(entry), code(entry.affected_id))

    @display(description="metadata")
    def metadata_json(self, entry: AuditEntry) -> str:
        return pretty_json(entry.metadata)

    @display(description="ID")
    def identifier(self, entry: AuditEntry) -> str:
        return code(entry.pk)
