"""The console's page of trusted issuers, its form and its actions."""

from operator import attrgetter
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from auditlog.actors.requests import user_of
from compliance.api.exceptions import describe
from compliance.console.access import DEVELOPERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import TenantScopedAdmin
from compliance.console.display import chip, chips, code, column, pretty_json
from compliance.console.filters import TenantFilter
from compliance.console.navigation import NavigationLine
from delegation.issuers import key_sets, services
from delegation.issuers.errors import InvalidIssuer
from delegation.issuers.models import TrustedIssuer
from delegation.issuers.serializers import DEFAULTS, CreateTrustedIssuerSerializer

GIVEN = ("issuer", "jwks_uri", "audiences", "algorithms", "subject_claim", "max_age_seconds")


class TrustedIssuerForm(forms.ModelForm):
    """Fields a developer may set, judged as by the API; pinned keys and required claims come by the API."""

    jwks_uri = forms.CharField(
        label="Address of its keys",
        required=False,
        empty_value=None,
        widget=UnfoldAdminTextInputWidget,
        help_text="Empty: where its discovery document says.",
    )
    audiences = forms.CharField(
        widget=UnfoldAdminTextareaWidget,
        help_text="One on each line: the client ids that its ID tokens are made for.",
    )
    algorithms = forms.MultipleChoiceField(
        choices=[(name, name) for name in key_sets.ALGORITHMS],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )

    class Meta:
        model = TrustedIssuer
        fields = ("tenant", *GIVEN)
        labels = {
            "subject_claim": "Claim that names the person",
            "max_age_seconds": "Age of an ID token at most (s)",
        }
        help_texts = {
            "issuer": "The exact iss of its ID tokens, such as https://login.example.com.",
            "subject_claim": "Such as sub, email or preferred_username.",
        }

    def clean_audiences(self) -> list[str]:
        return [line.strip() for line in self.cleaned_data["audiences"].splitlines() if line.strip()]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if self.errors:
            return data
        judged = CreateTrustedIssuerSerializer(data={name: data[name] for name in GIVEN})
        if not judged.is_valid():
            self.add_error(None, describe(judged.errors))
            return data
        try:
            services.check(TrustedIssuer(**judged.validated_data))
        except InvalidIssuer as error:
            self.add_error(None, error.message)
        return {**data, **judged.validated_data}


def _arguments(call: ActionCall) -> dict[str, Any]:
    return {"issuer_id": call.row.pk, **user_of(call.request, call.row)}


def switch(call: ActionCall) -> str:
    row = services.update(changes={"active": not call.row.active}, **_arguments(call))
    return "Its ID tokens count again." if row.active else "Its ID tokens count no more."


def remove(call: ActionCall) -> HttpResponse:
    services.delete(**_arguments(call))
    messages.success(call.request, "The issuer is trusted no more.")
    return HttpResponseRedirect(reverse("admin:issuers_trustedissuer_changelist"))


@admin.register(TrustedIssuer)
class TrustedIssuerAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Integration", 3, "Trusted issuers", "verified_user")
    form = TrustedIssuerForm
    add_roles = DEVELOPERS
    confirmed_actions = (
        ConfirmedAction(
            "off",
            "Switch off",
            "toggle_off",
            "Its ID tokens are refused from now on. Delegation tokens that it vouched for stay valid.",
            switch,
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
            switch,
            is_offered=lambda row: not row.active,
            roles=DEVELOPERS,
            form_class=forms.Form,
        ),
        ConfirmedAction(
            "remove",
            "Remove",
            "delete",
            "The tenant forgets the issuer. Delegation tokens that it vouched for stay valid.",
            remove,
            roles=DEVELOPERS,
            form_class=forms.Form,
            is_destructive=True,
        ),
    )
    list_display = ("address", "state", "audience_chips", "subject_claim", "tenant", "created_at")
    list_select_related = ("tenant",)
    list_filter = ("active", TenantFilter)
    search_fields = ("issuer",)
    fieldsets = (
        (None, {"fields": ("address", "state", "audience_chips", "algorithm_chips", "tenant")}),
        ("ID tokens", {"fields": ("subject_claim", "claims", "max_age_seconds")}),
        ("Keys", {"fields": ("jwks_uri", "pinned")}),
        ("Life", {"fields": ("identifier", "created_at", "updated_at")}),
    )
    add_fieldsets = ((None, {"fields": ("tenant", *GIVEN)}),)

    address = column("issuer", lambda row: code(row.issuer), ordering="issuer")
    state = column(
        "state",
        lambda row: chip("active", "success") if row.active else chip("switched off", "warning"),
        ordering="active",
    )
    audience_chips = column("audiences", lambda row: chips(row.audiences))
    algorithm_chips = column("algorithms", lambda row: chips(row.algorithms))
    claims = column("required claims", lambda row: pretty_json(row.required_claims))
    pinned = column("pinned keys", lambda row: pretty_json(row.jwks))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {**DEFAULTS, **super().get_changeform_initial_data(request)}

    def save_model(self, request: HttpRequest, obj: TrustedIssuer, form: Any, change: bool) -> None:
        given = {name: form.cleaned_data[name] for name in GIVEN}
        made = services.create(**given, **user_of(request, obj))
        obj.pk = made.pk
