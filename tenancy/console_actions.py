"""The mode of tenants and agents in the console: its chip, and the forms and the action that set it."""

from django import forms
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminSelectWidget

from auditlog.actors.requests import actor_of
from compliance.console.actions import ActionCall, ConfirmedAction, ReasonForm
from compliance.console.display import chip, visible
from tenancy import services
from tenancy.models import Enforcement

MODES = [
    (Enforcement.ENFORCE, "Enforce: stop agents at the risk threshold"),
    (Enforcement.OBSERVE, "Observe: record that they would have been stopped"),
]


class TenantModeForm(ReasonForm):
    enforcement = forms.ChoiceField(choices=MODES, label="Mode", widget=UnfoldAdminSelectWidget)


class AgentModeForm(ReasonForm):
    enforcement = forms.ChoiceField(
        choices=[("", "As its tenant"), *MODES],
        label="Mode",
        required=False,
        widget=UnfoldAdminSelectWidget,
    )


def mode_chip(enforcement: str) -> SafeString:
    """Return a mode as a chip; `observe` stands out."""
    return chip("observing", "warning") if enforcement == Enforcement.OBSERVE else chip("enforcing")


def _set_mode(call: ActionCall) -> str:
    tenant = services.set_enforcement(
        tenant_id=call.row.id,
        enforcement=Enforcement(call.data["enforcement"]),
        reason=call.data["reason"],
        actor=actor_of(call.request),
        now=call.now,
    )
    return f"The mode of {visible(tenant)} is now {tenant.enforcement}."


SET_TENANT_MODE = ConfirmedAction(
    name="enforcement",
    label="Set mode",
    icon="policy",
    explanation=(
        "Sets, in this environment, what follows when an agent without a mode of its own reaches the risk "
        "threshold. Events are scored, audited and announced in both modes; people can stop agents in both. "
        "Setting the mode stops nobody for past events unless the last minutes still hold too many."
    ),
    run=_set_mode,
    form_class=TenantModeForm,
)
