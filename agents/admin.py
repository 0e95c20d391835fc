"""Agents in the console."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display

from agents import services
from agents.models import Agent, AgentStatus
from agents.querysets import AgentQuerySet
from agents.risk import HIGH, MEDIUM, band_of
from auditlog.actors.requests import actor_of
from compliance.console import filters
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import chips, code, pretty_json, score_chip, status_chip, visible
from compliance.console.navigation import NavigationLine
from tenancy.console_actions import AgentBudgetForm, AgentModeForm, mode_chip
from tenancy.models import Enforcement


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


class ModeFilter(filters.DropdownFilter):
    """Filter by the mode that counts: the agent's own, else its tenant's."""

    title = "mode"
    parameter_name = "mode"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(Enforcement.ENFORCE, "Enforcing"), (Enforcement.OBSERVE, "Observing")]

    def queryset(self, request: HttpRequest, queryset: AgentQuerySet) -> AgentQuerySet:
        value = self.value()
        return queryset.in_mode(value) if value in Enforcement.values else queryset


def set_mode(call: ActionCall) -> str:
    agent, _ = services.update(
        tenant_id=call.row.tenant_id,
        agent_id=call.row.id,
        changes={"enforcement": call.data["enforcement"] or None},
        reason=call.data["reason"],
        actor=actor_of(call.request),
        now=call.now,
    )
    return f"The mode of {visible(agent)} is now {agent.effective_enforcement}."


SET_MODE = ConfirmedAction(
    name="enforcement",
    label="Set mode",
    icon="policy",
    explanation=(
        "Sets what follows when the agent reaches the risk threshold, whatever its tenant's mode. Its events "
        "are scored, audited and announced in both modes; people can stop it in both. Setting the mode stops "
        "it for past events only if the last minutes still hold too many."
    ),
    run=set_mode,
    is_offered=lambda agent: agent.status != AgentStatus.RETIRED,
    form_class=AgentModeForm,
)


def set_budget(call: ActionCall) -> str:
    agent, _ = services.update(
        tenant_id=call.row.tenant_id,
        agent_id=call.row.id,
        changes={"alarm_budget": call.data["alarm_budget"]},
        reason=call.data["reason"],
        actor=actor_of(call.request),
        now=call.now,
    )
    return f"The alarm budget of {visible(agent)} is now {agent.effective_alarm_budget:g}."


SET_BUDGET = ConfirmedAction(
    name="alarm_budget",
    label="Set alarm budget",
    icon="tune",
    explanation=(
        "Sets how many of the agent's ordinary events may ask for a look, whatever its tenant's budget. A "
        "smaller budget finds less. Events of the past keep their scores."
    ),
    run=set_budget,
    is_offered=lambda agent: agent.status != AgentStatus.RETIRED,
    form_class=AgentBudgetForm,
)


@admin.register(Agent)
class AgentAdmin(TenantScopedAdmin):
    """Agents, read-only but for mode and budget; `certificates` adds the actions that touch certificates."""

    found_by_name = True
    navigation = NavigationLine("Agents", 1, "Agents", "smart_toy")
    confirmed_actions: ClassVar[tuple[ConfirmedAction, ...]] = (SET_MODE, SET_BUDGET)
    related_links = (
        RelatedLink("Certificates", "workspace_premium", "certificates_certificate", "agent__id__exact"),
        RelatedLink("Events", "timeline", "events_behaviorevent", "agent__id__exact"),
        RelatedLink("Delegations", "share", "delegation_issuedtoken", "agent__id__exact"),
        RelatedLink("Incidents", "emergency_home", "incidents_incident", "agents__agent_id"),
        AUDIT_TRAIL,
    )
    list_display = ("label", "state", "risk", "tenant", "model", "version", "last_high_risk_at", "created_at")
    list_select_related = ("tenant",)
    list_filter = (
        ("status", filters.ChoicesDropdownFilter),
        RiskFilter,
        ModeFilter,
        filters.tenant_filter(),
        ("created_at", filters.RangeDateTimeFilter),
    )
    search_fields = ("name", "model", "model_hash")
    search_help_text = "Name, model, model hash or agent ID"
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-id")
    fieldsets = (
        (None, {"fields": ("label", "state", "mode", "status_reason", "tenant", "description")}),
        ("Identity", {"fields": ("identifier", "did", "inbox_address")}),
        ("Model", {"fields": ("model", "version", "hash")}),
        ("Authority", {"fields": ("scope", "limits")}),
        ("Agent card", {"fields": ("card",)}),
        (
            "Risk",
            {"fields": ("risk", "budget", "risk_updated_at", "last_high_risk_at", "would_have_stopped_at")},
        ),
        ("Metadata", {"fields": ("metadata_json",)}),
        ("Life", {"fields": ("created_at", "updated_at", "status_changed_at", "reinstated_at")}),
    )
    readonly_fields: ClassVar[tuple[str, ...]] = (
        *("label", "state", "mode", "identifier", "did", "hash", "scope", "limits", "risk", "metadata_json"),
        *("card", "budget"),
    )

    label = display(lambda self, agent: visible(agent.name), description="name", ordering="name")
    identifier = display(lambda self, agent: code(agent.pk), description="ID")
    did = display(lambda self, agent: code(agent.did), description="DID")
    hash = display(lambda self, agent: code(agent.model_hash), description="model hash")
    limits = display(lambda self, agent: pretty_json(agent.financial_scope), description="financial scope")
    risk = display(
        lambda self, agent: score_chip(agent.risk_score, band_of(agent.risk_score)),
        description="risk",
        ordering="risk_score",
    )
    card = display(lambda self, agent: pretty_json(agent.agent_card), description="published card")
    metadata_json = display(lambda self, agent: pretty_json(agent.metadata), description="metadata")

    @display(description="status", ordering="status")
    def state(self, agent: Agent) -> str:
        """Show the status, and that the agent is only observed, wherever the agent is listed."""
        return format_html(
            '<span class="console-chips">{}{}</span>', status_chip(agent.status), self.mark(agent)
        )

    def mark(self, agent: Agent) -> SafeString | str:
        """Return the chip of an agent that is only observed."""
        return mode_chip(agent.effective_enforcement) if agent.is_observed else ""

    @display(description="mode")
    def mode(self, agent: Agent) -> str:
        source = "its own" if agent.enforcement else "its tenant's"
        return format_html("{} {}", mode_chip(agent.effective_enforcement), source)

    @display(description="alarm budget")
    def budget(self, agent: Agent) -> str:
        """Show the budget that counts, and whose it is."""
        source = "its tenant's" if agent.alarm_budget is None else "its own"
        return f"{agent.effective_alarm_budget:g} of its ordinary events ({source})"

    @display(description="permitted actions")
    def scope(self, agent: Agent) -> str:
        permitted = agent.permitted_actions
        if permitted is None:
            return "None declared"
        return chips(permitted, "primary") if permitted else "Nothing is permitted"
