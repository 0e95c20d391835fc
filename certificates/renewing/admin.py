"""Blueprints in the console: the form, the agents that differ, and their renewals with progress."""

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from agents.blueprints import services as blueprints
from agents.blueprints.inheritance import brought_up, differing
from agents.blueprints.serializers import CreateBlueprintSerializer
from agents.models import OWNER_ROLES, Blueprint
from auditlog.actors.requests import user_of
from certificates.renewing import services
from compliance.api.exceptions import describe
from compliance.console.access import OFFICERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, RelatedLink, TenantScopedAdmin
from compliance.console.display import (
    EMPTY,
    chip,
    chips,
    column,
    facts,
    moment,
    pretty_json,
    table,
    visible,
)
from compliance.console.filters import TenantFilter
from compliance.console.navigation import NavigationLine
from people.doors.second_factor import check_shown

PICKABLE = 200
PLAIN = ("name", "model", "version", "model_hash", "validity_days", "alarm_budget")
PEOPLE = ("owner_name", "owner_email", "backup_owner_name", "backup_owner_email")
JSON_FIELDS = ("permitted_actions", "financial_scope", "ask_policy")
EDITED = (*PLAIN, *PEOPLE, *JSON_FIELDS)
ALL = "all"
BELOW: Final[Any] = (
    ("Agents", {"fields": ("last_renewal",)}),
    ("Life", {"fields": ("tenant", "identifier", "created_at", "updated_at")}),
)


class BlueprintForm(forms.ModelForm):
    """A blueprint; what is empty it does not state."""

    class Meta:
        model = Blueprint
        fields = ("tenant", *EDITED)
        help_texts = {
            "permitted_actions": 'As ["read", "pay"].',
            "financial_scope": "The trading limits, as the API takes them.",
            "ask_policy": 'As {"ask_from": "high", "always_ask": ["pay"], "ttl_seconds": 900}.',
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, field in self.fields.items():
            field.required = name in ("tenant", "name")

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        body: dict[str, Any] = {name: data[name] or None for name in PLAIN}
        body |= {name: data[name] for name in JSON_FIELDS}
        for role in OWNER_ROLES:
            person = {name: data[f"{role}_{name}"] for name in ("name", "email")}
            body[role] = person if any(person.values()) else None
        judged = CreateBlueprintSerializer(data=body)
        if not judged.is_valid():
            self.add_error(None, describe(judged.errors))
            return data
        return {**data, "stated": judged.validated_data}


def renewal_form(blueprint: Blueprint) -> type[forms.Form]:
    """Return the form that offers the agents of a blueprint that differ."""
    found = differing(blueprint).order_by("name", "id")[:PICKABLE]
    choices = [
        (str(one.id), f"{visible(one)}: {', '.join(brought_up(one, blueprint)).replace('_', ' ')}")
        for one in found
    ]

    class RenewalForm(forms.Form):
        agents = forms.MultipleChoiceField(
            choices=[(ALL, "All that differ"), *choices], widget=UnfoldAdminCheckboxSelectMultipleWidget
        )

    return RenewalForm


def renew(call: ActionCall) -> str:
    renewal = services.begin(
        blueprint_id=call.row.id,
        agent_ids=None if ALL in call.data["agents"] else call.data["agents"],
        **user_of(call.request, call.row),
    )
    return f"{renewal.matched} agents are being renewed; this page shows how far it is."


def _last_renewal(blueprint: Blueprint) -> Any:
    """Show how far the last renewal of agents is, and where it failed."""
    last = blueprint.renewals.first()
    if last is None:
        return EMPTY
    state = chip("done", "success") if last.ended_at else chip("running", "warning")
    counts = facts((name, str(count)) for name, count in last.counts.items())
    rows = [(one.agent_id, one.outcome, one.error) for one in last.unrenewed]
    failed = table(("agent", "outcome", "why"), rows) if rows else ""
    return format_html("{} {} {} {}", moment(last.started_at), state, counts, failed)


class BlueprintAdmin(TenantScopedAdmin):
    """Blueprints, and the agents that differ from theirs."""

    found_by_name = True
    navigation = NavigationLine("Agents", 2, "Blueprints", "architecture")
    form = BlueprintForm
    add_roles = edit_roles = OFFICERS
    edited = EDITED
    confirmed_actions = (
        ConfirmedAction(
            "renew",
            "Renew agents",
            "autorenew",
            "What the agents inherit becomes the blueprint's; what they state themselves is narrowed to it. "
            "Their certificates are renewed where they state what changed.",
            renew,
            form_for=renewal_form,
        ),
    )
    related_links = (
        RelatedLink("Agents", "smart_toy", "agents_agent", "blueprint_id"),
        AUDIT_TRAIL,
    )
    list_display = ("label", "model", "version", "answers", "tenant", "created_at")
    list_select_related = ("tenant",)
    list_filter = (TenantFilter,)
    search_fields = ("name", "model", "model_hash", "owner_email")
    fieldsets = (
        (None, {"fields": ("label", "model", "version", "model_hash", "answers", "validity_days")}),
        ("Limits", {"fields": ("permitted", "limits", "alarm_budget", "asks")}),
        *BELOW,
    )
    add_fieldsets = ((None, {"fields": ("tenant", *EDITED)}),)
    edit_fieldsets = ((None, {"fields": EDITED}), *BELOW)

    label = column("name", lambda row: visible(row.name), ordering="name")
    answers = column("owner", lambda row: visible(row.owner_email) if row.owner_email else EMPTY)
    permitted = column("permitted actions", lambda row: chips(row.permitted_actions or [], "primary"))
    limits = column("financial scope", lambda row: pretty_json(row.financial_scope))
    asks = column("ask policy", lambda row: pretty_json(row.ask_policy))
    last_renewal = column("last renewal", _last_renewal)

    def save_model(self, request: HttpRequest, obj: Blueprint, form: Any, change: bool) -> None:
        fields = form.cleaned_data["stated"]
        if fields["ask_policy"] != form.initial.get("ask_policy"):
            check_shown(request, "change an ask policy")
        told = user_of(request, obj)
        if not change:
            obj.pk = blueprints.create(fields=fields, **told).pk
            return
        changed = blueprints.update(blueprint_id=obj.pk, changes=fields, **told)
        if count := differing(changed).count():
            messages.info(request, f"{count} agents differ now; Renew agents shows them, and renews them.")
