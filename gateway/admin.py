"""The console's page of routes of gateways, and their form; the services hold its rules."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from unfold.decorators import display
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from agents.models import MAX_ACTION_NAME
from auditlog.actors.requests import user_of
from compliance.console.access import DEVELOPERS
from compliance.console.actions import ActionCall, ConfirmedAction
from compliance.console.admin import AUDIT_TRAIL, TenantScopedAdmin
from compliance.console.display import EMPTY, chip, chips, code, status_chip, visible
from compliance.console.filters import ChoicesDropdownFilter, TenantFilter
from compliance.console.navigation import NavigationLine
from compliance.core.plain_text import is_plain_text
from delegation.jose.tokens import MAX_NAME_LENGTH
from gateway import services
from gateway.access.admin import AskPolicyAdmin
from gateway.models import MAX_ROUTE_NAME, AskPolicy, GatewayCredential, GatewayRoute
from gateway.serializers import ACTION_PATTERN, NAME_PATTERN


def validate_plain_text(text: str) -> None:
    if not is_plain_text(text):
        raise forms.ValidationError("Must hold no hidden characters.")


class GatewayRouteForm(forms.ModelForm):
    name = forms.CharField(
        max_length=MAX_ROUTE_NAME,
        validators=[
            RegexValidator(
                rf"^{NAME_PATTERN}\Z",
                "Use lowercase letters, digits and hyphens, with a letter or digit at both ends.",
            )
        ],
        widget=UnfoldAdminTextInputWidget,
        help_text="Lowercase letters, digits and hyphens; the gateway sends it with each request.",
    )
    credentials = forms.MultipleChoiceField(
        choices=GatewayCredential.choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Any of these suffices. A serial number proves nothing; a bearer token works for "
        "anyone who holds it; a bound token needs a proof by its key.",
    )
    action = forms.CharField(
        max_length=MAX_ACTION_NAME,
        validators=[
            RegexValidator(
                rf"^{ACTION_PATTERN}\Z", "Must be printable ASCII without spaces, quotes and backslashes."
            )
        ],
        required=False,
        empty_value=None,
        widget=UnfoldAdminTextInputWidget,
        help_text="What a client must be permitted to do here. Empty: the gateway names it in each request.",
    )
    audience = forms.CharField(
        max_length=MAX_NAME_LENGTH,
        validators=[validate_plain_text],
        required=False,
        empty_value=None,
        widget=UnfoldAdminTextInputWidget,
        help_text="The audience that a token must have. Empty: only tokens without one pass.",
    )

    class Meta:
        model = GatewayRoute
        fields = ("tenant", *services.FIELDS)
        help_texts = {
            "highest_band": "The highest risk band, of any agent behind a token, that passes.",
            "root": "Verified: an issuer that the tenant trusts has verified the root of the chain.",
            "agents": "Own: only the tenant's agents pass.",
            "nonce_required": "Whether a proof must carry a nonce of this service.",
            "uncertified_agents": "Whether a token of agents without a certificate or a scope suffices.",
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if {"credentials", "root", "nonce_required"} <= data.keys():
            found = services.contradictions(data["credentials"], data["root"], data["nonce_required"])
            for field, contradiction in list(found):
                self.add_error(field, contradiction)
        return data


def _remove(call: ActionCall) -> HttpResponse:
    services.delete(route_id=call.row.pk, **user_of(call.request, call.row))
    messages.success(call.request, "The route is removed.")
    return HttpResponseRedirect(reverse("admin:gateway_gatewayroute_changelist"))


REMOVE = ConfirmedAction(
    "remove",
    "Remove",
    "delete",
    "Gateways that name this route let nothing pass from now on.",
    _remove,
    is_offered=lambda row: True,
    roles=DEVELOPERS,
    form_class=forms.Form,
    is_destructive=True,
)


admin.site.register(AskPolicy, AskPolicyAdmin)


@admin.register(GatewayRoute)
class GatewayRouteAdmin(TenantScopedAdmin):
    navigation = NavigationLine("Integration", 4, "Gateway routes", "door_front")
    form = GatewayRouteForm
    edit_roles = DEVELOPERS
    edited = services.FIELDS
    add_roles = DEVELOPERS
    confirmed_actions = (REMOVE,)
    related_links = (AUDIT_TRAIL,)
    list_display = ("label", "credential_chips", "demanded", "band", "root", "agents", "tenant", "updated_at")
    list_select_related = ("tenant",)
    list_filter = (("agents", ChoicesDropdownFilter), ("root", ChoicesDropdownFilter), TenantFilter)
    search_fields = ("name", "action", "audience")
    ordering = ("name", "id")
    fieldsets = (
        (None, {"fields": ("label", "tenant", "credential_chips", "demanded", "expected_audience")}),
        ("Limits", {"fields": ("band", "root", "agents", "nonce_required", "uncertified_agents")}),
        ("Life", {"fields": ("identifier", "created_at", "updated_at")}),
    )
    readonly_fields = ("label", "credential_chips", "demanded", "expected_audience", "band", "identifier")
    add_fieldsets = ((None, {"fields": ("tenant", *services.FIELDS)}),)
    edit_fieldsets = (
        (None, {"fields": services.FIELDS}),
        ("Life", {"fields": ("tenant", "identifier", "created_at", "updated_at")}),
    )

    label = display(lambda self, row: code(row.name), description="name", ordering="name")
    credential_chips = display(lambda self, row: chips(row.credentials), description="credentials")
    demanded = display(
        lambda self, row: chip(row.action, verbatim=True) if row.action else "named by the gateway",
        description="action",
        ordering="action",
    )
    expected_audience = display(
        lambda self, row: visible(row.audience) if row.audience else EMPTY, description="audience"
    )
    band = display(
        lambda self, row: status_chip(row.highest_band), description="highest band", ordering="highest_band"
    )

    def save_model(self, request: HttpRequest, obj: GatewayRoute, form: Any, change: bool) -> None:
        given, asked = {name: form.cleaned_data[name] for name in services.FIELDS}, user_of(request, obj)
        if change:
            services.update(route_id=obj.pk, changes=given, **asked)
        else:
            obj.pk = services.create(fields=given, **asked).pk
