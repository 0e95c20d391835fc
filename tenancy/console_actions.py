"""The mode and alarm budget of tenants and agents in the console: the forms and actions that set them."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminSelectWidget, UnfoldBooleanSwitchWidget

from auditlog.actors.requests import actor_of
from compliance.console.actions import ActionCall, ConfirmedAction, ReasonForm
from compliance.console.display import chip, visible
from tenancy import services
from tenancy.alarm_budgets import LEAST_BUDGET, MOST_BUDGET
from tenancy.models import Enforcement, Tenant

MODES = [
    (Enforcement.ENFORCE, "Enforce: stop agents at the risk threshold"),
    (Enforcement.OBSERVE, "Observe: record that they would have been stopped"),
]


class TenantModeForm(ReasonForm):
    enforcement = forms.TypedChoiceField(
        choices=MODES, coerce=Enforcement, label="Mode", widget=UnfoldAdminSelectWidget
    )


class AgentModeForm(ReasonForm):
    enforcement = forms.ChoiceField(
        choices=[("", "As its tenant"), *MODES],
        label="Mode",
        required=False,
        widget=UnfoldAdminSelectWidget,
    )


BUDGET_HELP = (
    "The share of an agent's ordinary events that may be medium or high, 0.001 to 0.05. At 0.01 an agent "
    "with 200 events a day asks for about 2 looks a day, one with 5,000 for about 50."
)


def _budget(**options: Any) -> forms.FloatField:
    return forms.FloatField(
        min_value=LEAST_BUDGET,
        max_value=MOST_BUDGET,
        label="Alarm budget",
        widget=UnfoldAdminDecimalFieldWidget,
        **options,
    )


class TenantBudgetForm(ReasonForm):
    alarm_budget = _budget(help_text=BUDGET_HELP)


class AgentBudgetForm(ReasonForm):
    alarm_budget = _budget(required=False, help_text=f"{BUDGET_HELP} Empty: as its tenant.")


class OwnerRequiredForm(ReasonForm):
    owner_required = forms.BooleanField(
        label="An agent without an owner is not certified", required=False, widget=UnfoldBooleanSwitchWidget
    )


def mode_chip(enforcement: str) -> SafeString:
    """Return a mode as a chip; `observe` stands out."""
    return chip("observing", "warning") if enforcement == Enforcement.OBSERVE else chip("enforcing")


def _setting(
    name: str,
    label: str,
    icon: str,
    explanation: str,
    form_class: type[ReasonForm],
    said: Callable[[Tenant], str],
) -> ConfirmedAction:
    """Return an action that changes the setting `name` of a tenant, told as `said`."""

    def run(call: ActionCall) -> str:
        asked: dict[str, Any] = {"value": call.data[name], "reason": call.data["reason"]}
        asked |= {"actor": actor_of(call.request), "now": call.now}
        return said(services.change_setting(tenant_id=call.row.id, name=name, **asked))

    return ConfirmedAction(name, label, icon, explanation, run, form_class=form_class)


SET_TENANT_MODE = _setting(
    "enforcement",
    "Set mode",
    "policy",
    "Sets, in this environment, what follows when an agent without a mode of its own reaches the risk "
    "threshold. Events are scored, audited and announced in both modes; people can stop agents in both. "
    "Setting the mode stops nobody for past events unless the last minutes still hold too many.",
    TenantModeForm,
    lambda tenant: f"The mode of {visible(tenant)} is now {tenant.enforcement}.",
)
SET_TENANT_BUDGET = _setting(
    "alarm_budget",
    "Set alarm budget",
    "tune",
    "Sets, in this environment, how many of the ordinary events of an agent without a budget of its own "
    "may ask for a look. A smaller budget finds less. Events of the past keep their scores.",
    TenantBudgetForm,
    lambda tenant: f"The alarm budget of {visible(tenant)} is now {tenant.alarm_budget:g}.",
)
SET_OWNER_REQUIRED = _setting(
    "owner_required",
    "Require owners",
    "person_check",
    "Sets, in this environment, whether only agents with an owner are certified. Certificates in force "
    "stay, and are renewed.",
    OwnerRequiredForm,
    lambda tenant: (
        f"{visible(tenant)} {'requires' if tenant.owner_required else 'does not require'} owners now."
    ),
)
