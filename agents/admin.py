"""Agents in the console: what they are and how they stand."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from agents.models import Agent
from agents.risk import HIGH, MEDIUM, band_of
from compliance.console import ConfirmedAction, RelatedLink, TenantScopedAdmin
from compliance.console.admin import AUDIT_TRAIL
from compliance.console.display import (
    chips,
    code,
    pretty_json,
    score_chip,
    status_chip,
    visible,
)
from compliance.console.filters import (
    ChoicesDropdownFilter,
    DropdownFilter,
    RangeDateTimeFilter,
    tenant_filter,
)


class RiskFilter(DropdownFilter):
    """By the band of the rolling score."""

    title = "risk band"
    parameter_name = "risk"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("high", "High"), ("medium", "Medium"), ("low", "Low")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Agent]) -> QuerySet[Agent]:
        if self.value() == "high":
            return queryset.filter(risk_score__gte=HIGH)
        if self.value() == "medium":
            return queryset.filter(risk_score__gte=MEDIUM, risk_score__lt=HIGH)
        return queryset.filter(risk_score__lt=MEDIUM) if self.value() == "low" else queryset


@admin.register(Agent)
class AgentAdmin(TenantScopedAdmin):
    """Nothing is edited here; what officers do to agents touches certificates, so that room adds it."""

    confirmed_actions: ClassVar[tuple[ConfirmedAction, ...]] = ()
    related_links = (
        RelatedLink("Certificates", "workspace_premium", "certificates_certificate", "agent__id__exact"),
        RelatedLink("Events", "timeline", "events_behaviorevent", "agent__id__exact"),
        AUDIT_TRAIL,
    )
    list_display = ("label", "state", "risk", "tenant", "model", "version", "last_high_risk_at", "created_at")
    list_select_related = ("tenant",)
    list_filter = (
        ("status", ChoicesDropdownFilter),
        RiskFilter,
        tenant_filter(),
        ("created_at", RangeDateTimeFilter),
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
        "label",
        "state",
        "identifier",
        "did",
        "hash",
        "scope",
        "limits",
        "risk",
        "metadata_json",
    )

    @display(description="name", ordering="name")
    def label(self, agent: Agent) -> str:
        return visible(agent.name)

    @display(description="status", ordering="status")
    def state(self, agent: Agent) -> str:
        return status_chip(agent.status)

    @display(description="risk", ordering="risk_score")
    def risk(self, agent: Agent) -> str:
        return score_chip(agent.risk_score, band_of(agent.risk_score))

    @display(description="ID")
    def identifier(self, agent: Agent) -> str:
        return code(agent.pk)

    @display(description="DID")
    def did(self, agent: Agent) -> str:
        return code(agent.did)

    @display(description="model hash")
    def hash(self, agent: Agent) -> str:
        return code(agent.model_hash)

    @display(description="permitted actions")
    def scope(self, agent: Agent) -> str:
        permitted = agent.permitted_actions
        if permitted is None:
            return "None declared"
        return chips(permitted, "primary") if permitted else "Nothing is permitted"

    @display(description="financial scope")
    def limits(self, agent: Agent) -> str:
        return pretty_json(agent.financial_scope)

    @display(description="metadata")
    def metadata_json(self, agent: Agent) -> str:
        return pretty_json(agent.metadata)
