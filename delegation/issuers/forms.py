"""The form of a trusted issuer in the console; the services hold its rules."""

from typing import Any

from django import forms
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from compliance.core.plain_text import is_plain_text
from delegation.issuers import fetching, key_sets
from delegation.issuers.fetching import KeyLocation
from delegation.issuers.models import (
    DEFAULT_AGE,
    LONGEST_AGE,
    MAX_NAME_LENGTH,
    MAX_URL_LENGTH,
    SHORTEST_AGE,
    TrustedIssuer,
)
from delegation.issuers.serializers import DEFAULT_ALGORITHMS, MOST_AUDIENCES
from delegation.jose.tokens import MAX_SUBJECT_LENGTH
from webhooks.sending.addresses import UrlRefused, check_url


class TrustedIssuerForm(forms.ModelForm):
    """What a developer says of an issuer; pinned keys and required claims come by the API."""

    issuer = forms.CharField(
        label="Issuer",
        max_length=MAX_SUBJECT_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="The exact iss of its ID tokens, such as https://login.example.com.",
    )
    jwks_uri = forms.CharField(
        label="Address of its keys",
        max_length=MAX_URL_LENGTH,
        required=False,
        empty_value=None,
        widget=UnfoldAdminTextInputWidget,
        help_text="Empty: where its discovery document says.",
    )
    audiences = forms.CharField(
        max_length=MOST_AUDIENCES * (MAX_NAME_LENGTH + 2),
        widget=UnfoldAdminTextareaWidget,
        help_text="One on each line: the client ids that its ID tokens are made for.",
    )
    algorithms = forms.MultipleChoiceField(
        choices=[(name, name) for name in key_sets.ALGORITHMS],
        initial=list(DEFAULT_ALGORITHMS),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )
    subject_claim = forms.CharField(
        label="Claim that names the person",
        max_length=MAX_NAME_LENGTH,
        initial="sub",
        widget=UnfoldAdminTextInputWidget,
        help_text="Such as sub, email or preferred_username.",
    )
    max_age_seconds = forms.IntegerField(
        label="Age of an ID token at most (s)",
        min_value=int(SHORTEST_AGE.total_seconds()),
        max_value=int(LONGEST_AGE.total_seconds()),
        initial=int(DEFAULT_AGE.total_seconds()),
        widget=UnfoldAdminIntegerFieldWidget,
    )

    class Meta:
        model = TrustedIssuer
        fields = (
            *("tenant", "issuer", "jwks_uri", "audiences", "algorithms", "subject_claim"),
            "max_age_seconds",
        )

    def clean_issuer(self) -> str:
        issuer: str = self.cleaned_data["issuer"]
        if not (issuer.isascii() and issuer.isprintable()) or " " in issuer:
            raise forms.ValidationError("Must be printable ASCII without spaces.")
        return issuer

    def clean_audiences(self) -> list[str]:
        lines = [line.strip() for line in self.cleaned_data["audiences"].splitlines()]
        found = list(dict.fromkeys(filter(None, lines)))
        if not 1 <= len(found) <= MOST_AUDIENCES:
            raise forms.ValidationError(f"Give 1 to {MOST_AUDIENCES} lines.")
        if any(len(name) > MAX_NAME_LENGTH or not is_plain_text(name) for name in found):
            raise forms.ValidationError(
                f"Lines have at most {MAX_NAME_LENGTH} characters, none of them hidden."
            )
        return found

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        if "issuer" in data and "jwks_uri" in data:
            try:
                check_url(
                    fetching.first_url(KeyLocation(data["issuer"], data["jwks_uri"])), fetching.url_policy()
                )
            except UrlRefused as refusal:
                self.add_error("jwks_uri" if data["jwks_uri"] else "issuer", f"The address {refusal}.")
        return data
