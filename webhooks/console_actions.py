"""Actions on webhooks and deliveries in the console; each makes one service call."""

from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextInputWidget,
)

from auditlog.actors.requests import user_of
from compliance.console.access import WEBHOOK_KEEPERS
from compliance.console.actions import ActionCall, confirmed_action
from compliance.console.secrets import refuse_repeated, secret_page
from compliance.core.wording import counted
from compliance.outbound.addresses import MAX_URL_LENGTH, UrlRefused, check_url
from webhooks import services
from webhooks.models import Webhook
from webhooks.services import url_policy
from webhooks.vocabulary import EventName

MAX_HOURS_BACK = 30 * 24
MAX_OVERLAP = 7 * 24


def _hours(label: str, minimum: int, maximum: int, help_text: str, **options: Any) -> forms.IntegerField:
    options |= {"min_value": minimum, "max_value": maximum, "initial": 24, "help_text": help_text}
    return forms.IntegerField(label=label, widget=UnfoldAdminIntegerFieldWidget, **options)


class RecoveryForm(forms.Form):
    hours = _hours("Hours back", 1, MAX_HOURS_BACK, f"Deliveries of these last hours; 1 to {MAX_HOURS_BACK}.")


class OverlapForm(forms.Form):
    hours = _hours("Hours of overlap", 0, MAX_OVERLAP, f"0 to {MAX_OVERLAP}; 24 if empty.", required=False)


_action = partial(
    confirmed_action, is_offered=attrgetter("is_open"), roles=WEBHOOK_KEEPERS, form_class=forms.Form
)
"""An action for developers, by default on an open webhook."""


def _arguments(call: ActionCall, webhook: Any) -> dict[str, Any]:
    return {"webhook_id": webhook.id, **user_of(call.request, webhook)}


@_action("test", "Send test", "send")
def send_test(call: ActionCall) -> str:
    """Queues a signed webhook.test message to this endpoint alone."""
    services.send_test(**_arguments(call, call.row))
    return "A test message is on its way; its delivery shows what the endpoint answers."


@_action("recover", "Redeliver failed", "replay", form_class=RecoveryForm)
def redeliver_failed(call: ActionCall) -> str:
    """Sends each message whose last delivery failed once more, oldest first, unchanged."""
    since = call.now - timedelta(hours=call.data["hours"])
    again = services.redeliver_failed(since=since, **_arguments(call, call.row))
    return f"On their way again: {counted(len(again), 'failed message')}."


@_action(
    "rotate",
    "Rotate secret",
    "autorenew",
    is_offered=lambda webhook: webhook.deleted_at is None,
    form_class=OverlapForm,
    is_destructive=True,
)
def rotate_secret(call: ActionCall) -> HttpResponse:
    """Every attempt from now on, retries included, is signed with a new secret that is shown once.
    The old one signs beside it for the hours that you choose: none, if it has leaked.
    """
    refuse_repeated(call.request)
    overlap = None if call.data["hours"] is None else call.data["hours"] * 3600
    rotated = services.rotate_secret(overlap_seconds=overlap, **_arguments(call, call.row))
    return secret_page(
        call.request,
        label="Webhook secret",
        secret=rotated.secret,
        explanation="Deliveries are signed with this secret from now on.",
        next_url=reverse("admin:webhooks_webhook_change", args=[call.row.pk]),
    )


@_action("off", "Switch off", "toggle_off", is_destructive=True)
def switch_off(call: ActionCall) -> str:
    """Nothing more is sent, and what waits is cancelled. It can be switched on again."""
    services.update(changes={"active": False}, **_arguments(call, call.row))
    return "The webhook is switched off."


@_action("on", "Switch on", "toggle_on", is_offered=lambda row: row.deleted_at is None and not row.active)
def switch_on(call: ActionCall) -> str:
    """Events from now on are sent again; those in between are not."""
    services.update(changes={"active": True}, **_arguments(call, call.row))
    return "The webhook is switched on."


@_action("redeliver", "Redeliver", "replay", is_offered=lambda row: row.is_finished and row.webhook.is_open)
def redeliver(call: ActionCall) -> str:
    """Sends the same message, id and bytes, once more, as a delivery of its own."""
    services.redeliver(delivery_id=call.row.id, **_arguments(call, call.row.webhook))
    return "The message is on its way again, as a delivery of its own."


WEBHOOK_ACTIONS = (send_test, redeliver_failed, rotate_secret, switch_off, switch_on)


class WebhookForm(forms.ModelForm):
    """Fields a developer may set on a webhook."""

    url = forms.CharField(
        label="URL",
        max_length=MAX_URL_LENGTH,
        widget=UnfoldAdminTextInputWidget(attrs={"type": "url"}),
        help_text="An absolute https URL to a public host, without user name, password or fragment.",
    )
    events = forms.MultipleChoiceField(
        choices=[(name, name) for name in EventName.values],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What is sent to it.",
    )

    class Meta:
        model = Webhook
        fields = ("tenant", "url", "events", "format", "description")

    def clean_url(self) -> Any:
        url = self.cleaned_data["url"]
        try:
            check_url(url, url_policy())
        except UrlRefused as refusal:
            text = str(refusal)
            raise forms.ValidationError(f"{text[0].upper()}{text[1:]}.") from refusal
        return url
