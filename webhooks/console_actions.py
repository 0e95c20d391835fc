"""What developers do to webhooks in the console; each is one service call."""

from datetime import timedelta
from typing import Any

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from auditlog.vocabulary import Actor
from compliance.console import ActionCall
from compliance.console.secrets import FreshSecret, secret_page
from webhooks import services

LONGEST_HOURS = 30 * 24
LONGEST_OVERLAP_HOURS = 7 * 24


class SinceForm(forms.Form):
    """How far back to look for failed deliveries."""

    hours = forms.IntegerField(
        min_value=1,
        max_value=LONGEST_HOURS,
        initial=24,
        label="Hours back",
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=f"Deliveries made in these last hours count; 1 to {LONGEST_HOURS}.",
    )


class OverlapForm(forms.Form):
    """How long the old secret signs beside the new one."""

    hours = forms.IntegerField(
        min_value=0,
        max_value=LONGEST_OVERLAP_HOURS,
        initial=24,
        required=False,
        label="Hours of overlap",
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=f"0 to {LONGEST_OVERLAP_HOURS}; 24 if left empty.",
    )


def _who_and_when(call: ActionCall) -> dict[str, Any]:
    return {"actor": Actor.console_user(call.username), "now": call.now}


def _webhook(call: ActionCall) -> dict[str, Any]:
    return {"tenant_id": call.row.tenant_id, "webhook_id": call.row.id, **_who_and_when(call)}


def send_test(call: ActionCall) -> str:
    services.send_test(**_webhook(call))
    return "A test message is on its way; its delivery shows what the endpoint answers."


def redeliver_failed(call: ActionCall) -> str:
    since = call.now - timedelta(hours=call.data["hours"])
    again = services.redeliver_failed(since=since, **_webhook(call))
    return f"{len(again)} failed messages are on their way again."


def rotate_secret(call: ActionCall) -> HttpResponse:
    hours = call.data["hours"]
    overlap = None if hours is None else hours * 3600
    made = services.rotate_secret(overlap_seconds=overlap, **_webhook(call))
    fresh = FreshSecret(
        label="Webhook secret",
        secret=made.secret,
        explanation="Deliveries are signed with this secret from now on.",
        next_url=reverse("admin:webhooks_webhook_change", args=[call.row.pk]),
    )
    return secret_page(call.request, fresh)


def switch_off(call: ActionCall) -> str:
    services.update(changes={"active": False}, **_webhook(call))
    return "The webhook is switched off."


def switch_on(call: ActionCall) -> str:
    services.update(changes={"active": True}, **_webhook(call))
    return "The webhook is switched on."


def redeliver(call: ActionCall) -> str:
    webhook = call.row.webhook
    services.redeliver(
        tenant_id=webhook.tenant_id,
        webhook_id=webhook.id,
        delivery_id=call.row.id,
        **_who_and_when(call),
    )
    return "The message is on its way again, as a delivery of its own."
