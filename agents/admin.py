"""Agents in the console."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from agents.models import Agent
from agents.risk import HIGH, MEDIUM, band_of
from compliance.console import filters
from compliance.console.actions import ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import chips, code, pretty_json, score_chip, status_chip, visible


class RiskFilter(filters.DropdownFilter):
    """Filter by the band of the rolling score."""

    title = "risk band"
    parameter_name = "risk"
    bands: ClassVar[dict[str, Q]] = {
        "high": Q(risk_score__gte=HIGH),
        "medium": Q(risk_score__gte=MEDIUM, risk_score__lt=HIGH),
        "low": Q(risk_score__lt=MEDIUM),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(band, band.capitalize()) for band in self.bands]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> QuerySet[Agent]:
        return queryset.filter(self.bands.get(self.value() or "", Q()))


@admin.register(Agent)
class AgentAdmin(TenantScopedAdmin):
    """Agents, read-only; `certificates` adds the actions of officers, which touch certificates."""

    confirmed_actions: ClassVar[tuple[ConfirmedAction, ...]] = ()
    related_links = (
        RelatedLink("Certificates", "workspace_premium", "certificates_certificate", "agent__id__exact"),
        RelatedLink("Events", "timeline", "events_behaviorevent", "agent__id__exact"),
        AUDIT_TRAIL,
    )
    list_display = ("label", "state", "risk", "tenant", "model", "version", "last_high_risk_at", "created_at")
    list_select_related = ("tenant",)
    list_filter = (
        ("status", filters.ChoicesDropdownFilter),
        RiskFilter,
        filters.tenant_filter(),
        ("created_at", filters.RangeDateTimeFilter),
    )
    search_fields = ("name", "model", "model_hash")
    search_help_text = "Name, model, model hash or agent ID"
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-id")
    fieldsets = (
        (None, {"fields": ("label", "state", "status_reason", "tenant", "description")}),
        ("Identity", {"fields": ("identifier", "did", "inbox_address")}),
        ("Model", {"fields": ("model", "version", "hash")}),
        ("Authority", {"fields": ("scope", "limits")}),
        ("Risk", {"fields": ("risk", "risk_updated_at", "last_high_risk_at")}),
        ("Metadata", {"fields": ("metadata_json",)}),
        ("Life", {"fields": ("created_at", "updated_at", "status_changed_at", "reinstated_at")}),
    )
    readonly_fields = (
        *("label", "state", "identifier", "did", "hash", "scope", "limits", "risk", "metadata_json"),
    )

    label = display(lambda self, agent: visible(agent.name), description="name", ordering="name")
    state = display(lambda self, agent: status_chip(agent.status), description="status", ordering="status")
    identifier = display(lambda self, agent: code(agent.pk), description="ID")
    did = display(lambda self, agent: code(agent.did), description="DID")
    hash = display(lambda self, agent: code(agent.model_hash), description="model hash")
    limits = display(lambda self, agent: pretty_json(agent.financial_scope), description="financial scope")
    risk = display(
        lambda self, agent: score_chip(agent.risk_score, band_of(agent.risk_score)), ordering="risk_score"
    )
    metadata_json = display(lambda self, agent: pretty_json(agent.metadata), description="metadata")

    @display(description="permitted actions")
    def scope(self, agent: Agent) -> str:
        permitted = agent.permitted_actions
        if permitted is None:
            return "None declared"
        return chips(permitted, "primary") if permitted else "Nothing is permitted"
