"""Stops in the console: who was stopped when and why, a form that says first how many match, the release."""

from typing import Any

from cryptography.x509 import ReasonFlags
from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from agents.blueprints.serializers import MOST_IDS
from auditlog.actors.names import NamesActors, actor_shown
from auditlog.actors.requests import user_of
from certificates.querysets import HOLD
from compliance.api.exceptions import describe
from compliance.console.access import OFFICERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import TenantScopedAdmin
from compliance.console.display import EMPTY, chip, code, column, pretty_json, visible
from compliance.console.filters import ChoicesDropdownFilter, RangeDateTimeFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from compliance.core.errors import Invalid, ServiceError
from delegation.stops import services
from delegation.stops.models import KindStop, StopState
from delegation.stops.serializers import CODES, MatchSerializer
from people.doors.second_factor import check_shown

TITLE = "Stop a kind"
NAMED = 5
KINDS = {
    "model_hash": "all agents of a model hash",
    "blueprint_id": "all agents of the blueprint with this ID",
    "agent_ids": "the agents with these IDs",
    "owner": "all agents of an owner",
    "all": "all",
}
TONES = {StopState.RUNNING: "warning", StopState.RELEASING: "warning", StopState.DONE: "danger"}


class StopForm(forms.ModelForm):
    """Whom to stop and why; it is valid once the number that match is typed."""

    kind = forms.ChoiceField(
        label="Stop", choices=[*KINDS.items()], widget=UnfoldAdminSelectWidget(attrs={"autofocus": True})
    )
    value = forms.CharField(
        label="Model hash, IDs or address",
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text=f"The exact model hash, up to {MOST_IDS} IDs with spaces between them, or an e-mail.",
    )
    reason_code = forms.ChoiceField(
        choices=[(code, code) for code in CODES if code != HOLD],
        initial=ReasonFlags.unspecified.value,
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Public, with certificates that are revoked for good.",
    )
    typed = forms.IntegerField(
        label="Number of agents",
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Leave it empty to see how many match, then type their number to stop them.",
    )

    class Meta:
        model = KindStop
        fields = ("tenant", "reason", "revoke")
        labels = {"revoke": "Revoke for good"}
        widgets = {"reason": UnfoldAdminTextareaWidget(attrs={"rows": 3})}
        help_texts = {
            "reason": "Kept in the audit log and the receipt beside your name; 1 to 500 characters.",
            "revoke": "Off: certificates are on hold until the stop is released.",
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        value = data["value"].strip()
        wanted = {"all": True, "agent_ids": value.split()}.get(data["kind"], value)
        judged = MatchSerializer(data={data["kind"]: wanted})
        try:
            if not judged.is_valid():
                raise Invalid(describe(judged.errors))
            data["match"] = judged.validated_data
            found = services.matching(tenant_id=data["tenant"].id, match=data["match"])
        except ServiceError as error:
            self.add_error("value", error.message)
            return data
        count, names = found.count(), [visible(one) for one in found[:NAMED]]
        if data["typed"] != count:
            more = ", …" if count > NAMED else ""
            self.add_error(
                "typed", f"{count} agents match: {', '.join(names)}{more}. Type {count} to stop them."
            )
        return data


def release(call: ActionCall) -> str:
    check_shown(call.request, "release a stop")
    asked = user_of(call.request, call.row)
    stop = services.release(stop_id=call.row.id, reason=call.data["reason"], **asked)
    stop = services.work(stop=stop, now=asked["now"])
    return f"{stop.released} agents are released." if stop.state == StopState.RELEASED else "Being released."


@admin.register(KindStop)
class StopAdmin(NamesActors, TenantScopedAdmin):
    """Stops, and the form that begins one."""

    adding = TITLE
    navigation = NavigationLine("Agents", 5, TITLE, "front_hand")
    form = StopForm
    actor_field = "started_by"
    add_roles = OFFICERS
    confirmed_actions = (
        ConfirmedAction(
            "release",
            "Release",
            "restart_alt",
            "Agents that this stop put on hold are reinstated, but for those that somebody stopped since or "
            "that another stop holds too.",
            release,
            is_offered=lambda row: not row.revoke and row.state in (StopState.DONE, StopState.RELEASED),
        ),
    )
    list_display = ("started_at", "shown_reason", "state_chip", "numbers", "tenant", "officer")
    list_select_related = ("tenant",)
    list_filter = (("state", ChoicesDropdownFilter), TenantFilter, ("started_at", RangeDateTimeFilter))
    fieldsets = (
        (None, {"fields": ("state_chip", "numbers", "shown_match", "shown_reason", "ending", "tenant")}),
        ("Life", {"fields": ("identifier", "started_at", "officer", "ended_at", "merkle_root")}),
        ("Release", {"fields": ("shown_release", "released", "released_at")}),
    )
    add_fieldsets = (
        (None, {"fields": ("tenant", "kind", "value", "reason", "revoke", "reason_code", "typed")}),
    )

    officer = column("stopped by", lambda row: actor_shown(row.started_by, row.actor_name))
    shown_reason = column("reason", lambda row: visible(row.reason))
    state_chip = column(
        "state", lambda row: chip(row.get_state_display(), TONES.get(row.state, "default")), ordering="state"
    )
    numbers = column(
        "agents",
        lambda row: (
            f"{row.stopped} of {row.matched} stopped, {row.skipped} skipped, {row.failed} failed, "
            f"{row.released} released"
        ),
    )
    shown_match = column("match", lambda row: pretty_json(row.match))
    ending = column("certificates", lambda row: code(row.reason_code))
    merkle_root = column("Merkle root", lambda row: code(row.root) if row.root else EMPTY)
    shown_release = column("reason", lambda row: visible(row.release_reason) or EMPTY)

    def save_model(self, request: HttpRequest, obj: KindStop, form: Any, change: bool) -> None:
        check_shown(request, "stop agents")
        data, asked = form.cleaned_data, user_of(request, obj)
        made = services.begin(
            match=data["match"],
            revoke=data["revoke"],
            reason=data["reason"],
            reason_code=(data["reason_code"] or "unspecified") if data["revoke"] else HOLD,
            **asked,
        )
        services.work(stop=made, now=asked["now"])
        obj.pk, obj.matched, obj.reason = made.pk, made.matched, made.reason
