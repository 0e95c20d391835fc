"""Actions on trusted issuers in the console; each makes one service call."""

from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.urls import reverse

from auditlog.actors.requests import actor_of
from compliance.console.access import DEVELOPERS
from compliance.console.actions import ActionCall, ConfirmedAction
from delegation.issuers import services


def _arguments(call: ActionCall) -> dict[str, Any]:
    row = call.row
    return {
        "tenant_id": row.tenant_id,
        "issuer_id": row.pk,
        "actor": actor_of(call.request),
        "now": call.now,
    }


def _switch_off(call: ActionCall) -> str:
    services.update(changes={"active": False}, **_arguments(call))
    return "Its ID tokens count no more."


def _switch_on(call: ActionCall) -> str:
    services.update(changes={"active": True}, **_arguments(call))
    return "Its ID tokens count again."


def _remove(call: ActionCall) -> HttpResponse:
    services.delete(**_arguments(call))
    messages.success(call.request, "The issuer is trusted no more.")
    return HttpResponseRedirect(reverse("admin:issuers_trustedissuer_changelist"))


ISSUER_ACTIONS = (
    ConfirmedAction(
        "off",
        "Switch off",
        "toggle_off",
        "Its ID tokens are refused from now on. Delegation tokens that it vouched for stay valid.",
        _switch_off,
        is_offered=attrgetter("active"),
        roles=DEVELOPERS,
        form_class=forms.Form,
        is_destructive=True,
    ),
    ConfirmedAction(
        "on",
        "Switch on",
        "toggle_on",
        "Its ID tokens count again.",
        _switch_on,
        is_offered=lambda row: not row.active,
        roles=DEVELOPERS,
        form_class=forms.Form,
    ),
    ConfirmedAction(
        "remove",
        "Remove",
        "delete",
        "The tenant forgets the issuer. Delegation tokens that it vouched for stay valid.",
        _remove,
        is_offered=lambda row: True,
        roles=DEVELOPERS,
        form_class=forms.Form,
        is_destructive=True,
    ),
)
