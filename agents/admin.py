"""Agents in the console."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from django import forms
from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from agents import services
from agents.models import MAX_EMAIL_LENGTH, OWNER_ROLES, Agent, AgentStatus
from agents.querysets import IS_ORPHAN, NEEDS_ATTENTION, is_in_mode
from agents.risk import HIGH, MEDIUM, band_of
from agents.serializers import EMAIL_PATTERN
from auditlog.actors.requests import user_of
from compliance.console import filters
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import (
    EMPTY,
    chip,
    chips,
    code,
    column,
    pretty_json,
    score_chip,
    status_chip,
    visible,
)
from compliance.console.navigation import NavigationLine
from tenancy.console_actions import AgentBudgetForm, AgentModeForm, mode_chip
from tenancy.models import Enforcement

OF_TENANT: Final = "its tenant's"
SECTIONS: Final = {
    "Agent": ("label", "mode", "tenant", "description"),
    "Identity": ("identifier", "did", "inbox_address"),
    "Model": ("model", "version", "hash"),
    "Authority": ("scope", "limits", "validity_days", "blueprint"),
    "Agent card": ("card",),
    "Risk": ("budget", "risk_updated_at", "last_high_risk_at", "would_have_stopped_at"),
    "Metadata": ("metadata_json",),
    "Life": ("created_at", "updated_at", "status_changed_at", "reinstated_at", "dormant_at"),
}
"""What a page shows below the agent's summary, which `ops` puts there."""


RISK: Final = {
    "high": ("High", Q(risk_score__gte=HIGH)),
    "medium": ("Medium", Q(risk_score__gte=MEDIUM, risk_score__lt=HIGH)),
    "low": ("Low", Q(risk_score__lt=MEDIUM)),
    "attention": ("Attention", NEEDS_ATTENTION),
}
MODE: Final[dict[str, tuple[str, Q]]] = {
    Enforcement.ENFORCE: ("Enforcing", is_in_mode(Enforcement.ENFORCE)),
    Enforcement.OBSERVE: ("Observing", is_in_mode(Enforcement.OBSERVE)),
}
OWNER: Final = {"none": ("Without an owner", IS_ORPHAN), "some": ("With an owner", ~IS_ORPHAN)}
DORMANT: Final = {
    "yes": ("Dormant", Q(dormant_at__isnull=False)),
    "no": ("Not dormant", Q(dormant_at=None)),
}


class OwnerForm(forms.Form):
    """A person who answers for an agent, or nobody."""

    role = forms.ChoiceField(
        choices=[(role, role.replace("_", " ").capitalize()) for role in OWNER_ROLES],
        widget=UnfoldAdminSelectWidget,
    )
    name = forms.CharField(
        max_length=255,
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Without name and e-mail nobody has the role.",
    )
    email = forms.CharField(
        max_length=MAX_EMAIL_LENGTH,
        required=False,
        label="E-mail",
        validators=[RegexValidator(EMAIL_PATTERN, "Enter an e-mail address.")],
        widget=UnfoldAdminTextInputWidget,
    )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and bool(data["name"]) != bool(data["email"]):
            self.add_error("name", "Give both name and e-mail, or neither.")
        return data


class SuccessorForm(OwnerForm):
    """The person who takes the place of an agent's owner or backup owner, at all that person's agents."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["role"].label = "Who leaves"
        self.fields["name"].required = self.fields["email"].required = True
        self.fields["name"].help_text = "The successor."


def _setting(
    name: str,
    label: str,
    icon: str,
    explanation: str,
    form: type[forms.Form],
    changes: Callable[[dict[str, Any]], dict[str, Any]],
    said: Callable[[Agent, dict[str, Any]], str],
) -> ConfirmedAction:
    """Return an action that sets columns of an agent: `changes` of the form's data, told as `said`."""

    def run(call: ActionCall) -> str:
        agent, _ = services.update(
            agent_id=call.row.id,
            changes=changes(call.data),
            reason=call.data.get("reason", ""),
            **user_of(call.request, call.row),
        )
        return said(agent, call.data)

    return ConfirmedAction(
        name,
        label,
        icon,
        explanation,
        run,
        is_offered=lambda agent: agent.status != AgentStatus.RETIRED,
        form_class=form,
    )


def _told_owner(agent: Agent, data: dict[str, Any]) -> str:
    role = data["role"]
    return f"The {role.replace('_', ' ')} of {visible(agent)} is now {person_shown(getattr(agent, role))}."


SET_OWNER = _setting(
    "owner",
    "Set owner",
    "person",
    "Names a person who answers for the agent, and whom a mail tells of strikes and stops. The owner may "
    "decide on approvals by a link. Certificates do not name people; the audit log does.",
    OwnerForm,
    lambda data: {data["role"]: {part: data[part] for part in ("name", "email")} if data["name"] else None},
    _told_owner,
)
SET_MODE = _setting(
    "enforcement",
    "Set mode",
    "policy",
    "Sets what follows when the agent reaches the risk threshold, whatever its tenant's mode. Its events "
    "are scored, audited and announced in both modes; people can stop it in both. Setting the mode stops "
    "it for past events only if the last minutes still hold too many.",
    AgentModeForm,
    lambda data: {"enforcement": data["enforcement"] or None},
    lambda agent, _: f"The mode of {visible(agent)} is now {agent.effective_enforcement}.",
)
SET_BUDGET = _setting(
    "alarm_budget",
    "Set alarm budget",
    "tune",
    "Sets how many of the agent's ordinary events may ask for a look, whatever its tenant's budget. A "
    "smaller budget finds less. Events of the past keep their scores.",
    AgentBudgetForm,
    lambda data: {"alarm_budget": data["alarm_budget"]},
    lambda agent, _: f"The alarm budget of {visible(agent)} is now {agent.effective_alarm_budget:g}.",
)


def person_shown(person: dict[str, str] | None) -> str:
    return EMPTY if person is None else f"{visible(person['name'])} <{visible(person['email'])}>"


class AgentAdmin(TenantScopedAdmin):
    """Agents, read-only but for owners, mode and budget; `certificates` adds what touches certificates."""

    found_by_name = True
    navigation = NavigationLine("Agents", 1, "Agents", "smart_toy")
    confirmed_actions: ClassVar[tuple[ConfirmedAction, ...]] = (SET_OWNER, SET_MODE, SET_BUDGET)
    related_links = (
        RelatedLink("Certificates", "workspace_premium", "certificates_certificate", "agent__id__exact"),
        RelatedLink("Events", "timeline", "events_behaviorevent", "agent__id__exact"),
        RelatedLink("Delegations", "share", "delegation_issuedtoken", "agent__id__exact"),
        RelatedLink("Incidents", "emergency_home", "incidents_incident", "agents__agent_id"),
        AUDIT_TRAIL,
    )
    list_display = (
        *("label", "state", "risk", "owner_shown", "tenant", "model", "last_high_risk_at"),
        "created_at",
    )
    list_select_related = ("tenant",)
    list_filter = (
        ("status", filters.ChoicesDropdownFilter),
        filters.condition_filter("risk", RISK),
        filters.condition_filter("mode", MODE),
        filters.condition_filter("owner", OWNER),
        filters.condition_filter("dormant", DORMANT),
        filters.TenantFilter,
        ("created_at", filters.RangeDateTimeFilter),
    )
    search_fields = ("name", "model", "model_hash", "owner_email", "backup_owner_email")
    search_help_text = "Name, model, model hash, e-mail of an owner or backup owner, or agent ID"
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-id")
    fieldsets: ClassVar[Any] = tuple(
        (title, {"fields": fields, "classes": ("collapse",)}) for title, fields in SECTIONS.items()
    )
    readonly_fields: ClassVar[tuple[str, ...]] = (
        *("label", "mode", "identifier", "did", "hash", "scope", "limits", "metadata_json", "card", "budget"),
        "blueprint",
    )

    label = column("name", lambda agent: visible(agent.name), ordering="name")
    blueprint = column("blueprint", lambda agent: code(agent.blueprint_id))
    did = column("DID", lambda agent: code(agent.did))
    owner_shown = column(
        "owner",
        lambda one: chip("no owner", "warning") if one.is_orphan else visible(one.owner_name or EMPTY),
        ordering="owner_name",
    )
    hash = column("model hash", lambda agent: code(agent.model_hash))
    limits = column("financial scope", lambda agent: pretty_json(agent.financial_scope))
    risk = column(
        "risk", lambda one: score_chip(one.risk_score, band_of(one.risk_score)), ordering="risk_score"
    )
    card = column("published card", lambda agent: pretty_json(agent.agent_card))
    metadata_json = column("metadata", lambda agent: pretty_json(agent.metadata))
    # The mode and the budget that count, and whose they are.
    mode = column(
        "mode",
        lambda one: format_html(
            "{} {}", mode_chip(one.effective_enforcement), "its own" if one.enforcement else OF_TENANT
        ),
    )
    budget = column(
        "alarm budget",
        lambda one: (
            f"{one.effective_alarm_budget:g} of its ordinary events "
            f"({'its own' if one.alarm_budget is not None else OF_TENANT})"
        ),
    )
    scope = column(
        "permitted actions",
        lambda one: (
            chips(one.permitted_actions, "primary")
            if one.permitted_actions
            else "None declared"
            if one.permitted_actions is None
            else "Nothing is permitted"
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request).annotate(is_orphan=IS_ORPHAN)
        return rows

    @display(description="status", ordering="status")
    def state(self, agent: Agent) -> str:
        """Show the status, and that the agent is only observed, wherever the agent is listed."""
        return format_html(
            '<span class="console-chips">{}{}</span>', status_chip(agent.status), self.mark(agent)
        )

    def mark(self, agent: Agent) -> SafeString | str:
        """Return the chips of an agent that is only observed, or dormant."""
        observed = mode_chip(agent.effective_enforcement) if agent.is_observed else ""
        return format_html("{}{}", observed, chip("dormant", "warning") if agent.dormant_at else "")
