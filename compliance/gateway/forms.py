"""The form of a gateway's route in the console; the services hold its rules."""

import re
from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from compliance.core.plain_text import is_plain_text
from compliance.gateway import services
from compliance.gateway.models import MAX_ACTION_LENGTH, MAX_ROUTE_NAME, GatewayCredential, GatewayRoute
from compliance.gateway.serializers import ACTION_PATTERN, NAME_PATTERN
from delegation.jose.tokens import MAX_NAME_LENGTH


class GatewayRouteForm(forms.ModelForm):
    """What a developer says of a route."""

    name = forms.CharField(
        max_length=MAX_ROUTE_NAME,
        widget=UnfoldAdminTextInputWidget,
        help_text="Lowercase letters, digits and hyphens; the gateway sends it with each request.",
    )
    credentials = forms.MultipleChoiceField(
        choices=GatewayCredential.choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Any of these suffices. A serial number proves nothing; a bearer token works for "
        "whoever holds it; a bound token needs a proof by its key.",
    )
    action = forms.CharField(
        max_length=MAX_ACTION_LENGTH,
        required=False,
        empty_value=None,
        widget=UnfoldAdminTextInputWidget,
        help_text="What a client must be permitted to do here. Empty: the gateway names it in each request.",
    )
    audience = forms.CharField(
        max_length=MAX_NAME_LENGTH,
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
        }

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if re.fullmatch(NAME_PATTERN, name) is None:
            raise forms.ValidationError(
                "Use lowercase letters, digits and hyphens, with a letter or digit at both ends."
            )
        return name

    def clean_action(self) -> str | None:
        action: str | None = self.cleaned_data["action"]
        if action is not None and re.fullmatch(ACTION_PATTERN, action) is None:
            raise forms.ValidationError("Must be printable ASCII without spaces, quotes and backslashes.")
        return action

    def clean_audience(self) -> str | None:
        audience: str | None = self.cleaned_data["audience"]
        if audience is not None and not is_plain_text(audience):
            raise forms.ValidationError("Must hold no hidden characters.")
        return audience

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if {"credentials", "root", "nonce_required"} <= data.keys():
            found = services.contradictions(data["credentials"], data["root"], data["nonce_required"])
            for field, contradiction in list(found):
                self.add_error(field, contradiction)
        return data
