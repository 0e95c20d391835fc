"""The console's page of approval policies, and their form."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from agents.blueprints.serializers import PutAskPolicySerializer
from auditlog.actors.requests import user_of
from compliance.api.exceptions import describe
from compliance.console.access import OFFICERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, chips, code, column
from compliance.console.filters import ChoicesDropdownFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from gateway.access import services
from gateway.access.openapi import PRECEDENCE
from gateway.models import AskPolicy
from people.doors.second_factor import check_shown

CHANGE = "change approval policies"
ADDED = ("applies_to", *services.FIELDS)


class AskPolicyForm(forms.ModelForm):
    applies_to = forms.CharField(
        max_length=64,
        initial=services.TENANT,
        widget=UnfoldAdminTextInputWidget,
        help_text=f"tenant, agent:<id> or route:<id> of a gateway route. {PRECEDENCE}",
    )
    always_ask = forms.CharField(
        required=False,
        widget=UnfoldAdminTextareaWidget,
        help_text="Names of actions, one a line, for which a person is asked whatever their score.",
    )

    class Meta:
        model = AskPolicy
        fields = ("tenant", *services.FIELDS)
        labels = {"ttl_seconds": "Time to decide and act (s)"}
        help_texts = {
            "ask_from": "The lowest band of an act's score from which a person is asked.",
            "ttl_seconds": "How long an approval waits: 60 to 86,400 seconds.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            del self.fields["applies_to"]
            self.initial["always_ask"] = "\n".join(self.instance.always_ask)

    def clean_always_ask(self) -> list[str]:
        return [line.strip() for line in self.cleaned_data["always_ask"].splitlines() if line.strip()]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        judged = PutAskPolicySerializer(data={name: data[name] for name in services.FIELDS})
        if not judged.is_valid():
            self.add_error(None, describe(judged.errors))
            return data
        return {**data, **judged.validated_data}


def _remove(call: ActionCall) -> HttpResponse:
    check_shown(call.request, CHANGE)
    services.remove(applies_to=call.row.applies_to, **user_of(call.request, call.row))
    messages.success(call.request, "The policy is removed.")
    return HttpResponseRedirect(reverse("admin:gateway_askpolicy_changelist"))


REMOVE = ConfirmedAction(
    "remove",
    "Remove",
    "delete",
    "A less specific policy counts from now on; without one, nobody is asked.",
    _remove,
    is_offered=lambda row: True,
    roles=OFFICERS,
    form_class=forms.Form,
    is_destructive=True,
)


class AskPolicyAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Agents", 7, "Approval policies", "front_hand")
    form = AskPolicyForm
    edit_roles = OFFICERS
    edited = services.FIELDS
    add_roles = OFFICERS
    confirmed_actions = (REMOVE,)
    related_links = (AUDIT_TRAIL,)
    list_display = ("label", "asked_from", "names", "ttl_seconds", "tenant", "updated_at")
    list_select_related = ("tenant",)
    list_filter = (("ask_from", ChoicesDropdownFilter), TenantFilter)
    search_fields = ("agent_id", "route__name")
    ordering = ("created_at", "id")
    fieldsets = (
        (None, {"fields": ("label", "tenant", "asked_from", "names", "ttl_seconds")}),
        ("Life", {"fields": ("identifier", "created_at", "updated_at")}),
    )
    readonly_fields = ("label", "asked_from", "names", "identifier")
    add_fieldsets = ((None, {"fields": ("tenant", *ADDED)}),)
    edit_fieldsets = (
        (None, {"fields": ("label", *services.FIELDS)}),
        ("Life", {"fields": ("tenant", "identifier", "created_at", "updated_at")}),
    )

    label = column("applies to", lambda row: code(row.applies_to))
    asked_from = column("asked from", lambda row: chip(row.get_ask_from_display()), ordering="ask_from")
    names = column("always asked", lambda row: chips(row.always_ask) if row.always_ask else EMPTY)

    def save_model(self, request: HttpRequest, obj: AskPolicy, form: Any, change: bool) -> None:
        check_shown(request, CHANGE)
        applies_to = obj.applies_to if change else form.cleaned_data["applies_to"]
        made = services.put(
            applies_to=applies_to,
            fields={name: form.cleaned_data[name] for name in services.FIELDS},
            **user_of(request, obj),
        )
        obj.pk = made.pk
