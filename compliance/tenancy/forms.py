"""The console's forms for keys and memberships."""

from datetime import timedelta
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
)

from compliance.api.permissions import Scope
from compliance.clock import now
from compliance.environments import Environment
from compliance.tenancy.models import ApiKey, Membership, Tenant

LONGEST_OVERLAP_HOURS = 7 * 24


class NewKeyForm(forms.ModelForm):
    """What a new API key is for; the secret is made by the service."""

    scopes = forms.MultipleChoiceField(
        choices=[(scope.value, scope.value) for scope in Scope],
        initial=[scope.value for scope in Scope],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What the key may do; a request beyond its scopes is answered with 403.",
    )
    expires_at = forms.SplitDateTimeField(
        required=False, widget=UnfoldAdminSplitDateTimeWidget, help_text="UTC; empty: until it is revoked."
    )

    class Meta:
        model = ApiKey
        fields = ("tenant", "name", "scopes", "expires_at")

    def clean_expires_at(self) -> Any:
        moment = self.cleaned_data["expires_at"]
        if moment is not None and moment <= now():
            raise forms.ValidationError("This moment has passed.")
        return moment


class RollKeyForm(forms.Form):
    """How long the old key lives on beside its successor."""

    overlap_hours = forms.IntegerField(
        initial=24,
        validators=[MinValueValidator(0), MaxValueValidator(LONGEST_OVERLAP_HOURS)],
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=f"The old key works for this long; 0 to {LONGEST_OVERLAP_HOURS} hours.",
    )

    @property
    def overlap(self) -> timedelta:
        return timedelta(hours=self.cleaned_data["overlap_hours"])


class MembershipForm(forms.ModelForm):
    """Who may do what for which tenant."""

    tenant = forms.ModelChoiceField(
        Tenant.objects.using(Environment.LIVE.alias),
        widget=UnfoldAdminSelectWidget,
        empty_label="Select value",
    )

    class Meta:
        model = Membership
        fields = ("user", "role")
