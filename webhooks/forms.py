"""The form of a webhook in the console; the services hold its rules."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextInputWidget

from webhooks.models import Webhook
from webhooks.sending.addresses import MAX_URL_LENGTH, UrlRefused, check_url
from webhooks.services import url_policy
from webhooks.vocabulary import EventName


class WebhookForm(forms.ModelForm):
    """What a developer says of a webhook."""

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
        fields = ("tenant", "url", "events", "description")

    def clean_url(self) -> Any:
        url = self.cleaned_data["url"]
        try:
            check_url(url, url_policy())
        except UrlRefused as refusal:
            text = str(refusal)
            raise forms.ValidationError(f"{text[0].upper()}{text[1:]}.") from refusal
        return url
