"""What operators do to a person's single sign-on, on the user's page."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.models import User
from unfold.widgets import UnfoldAdminTextInputWidget

from auditlog.actors.requests import actor_of
from compliance.console.access import OPERATORS
from compliance.console.actions import ActionCall, confirmed_action
from compliance.console.display import visible
from people.models import ExternalIdentity
from people.sso import identities
from people.sso.configuration import is_on
from people.sso.tokens import LONGEST_SUBJECT, is_plain


class SubjectForm(forms.Form):
    """The account at the provider."""

    subject = forms.CharField(
        max_length=LONGEST_SUBJECT,
        help_text="The account's unchanging id (sub) at the provider; not its name or e-mail address.",
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True, "spellcheck": "false"}),
    )

    def clean_subject(self) -> str:
        subject: str = self.cleaned_data["subject"]
        if not is_plain(subject):
            raise forms.ValidationError("A subject has ASCII characters alone.")
        return subject


@confirmed_action(
    "link_sign_on",
    "Link single sign-on",
    "link",
    is_offered=lambda user: is_on() and identities.identity_of(user, settings.OIDC_ISSUER) is None,
    roles=OPERATORS,
    form_class=SubjectForm,
)
def link(call: ActionCall) -> str:
    """Lets an account of the identity provider sign in as this person. Take its id from the provider, not
    from who asks.
    """
    if not is_on():
        return "Single sign-on is off."
    account = {"issuer": settings.OIDC_ISSUER, "subject": call.data["subject"]}
    identities.link(user=call.row, **account, via="operator", actor=actor_of(call.request), now=call.now)
    return f"{settings.OIDC_LABEL} signs {visible(call.row)} in from now on."


@confirmed_action(
    "unlink_sign_on",
    "Unlink single sign-on",
    "link_off",
    is_offered=lambda user: ExternalIdentity.objects.filter(person__user=user).exists(),
    roles=OPERATORS,
    is_destructive=True,
)
def unlink(call: ActionCall) -> str:
    """The account of the provider does not sign in as this person any more. Sessions go on."""
    given: dict[str, Any] = {"reason": call.data["reason"], "by_person": False}
    for identity in ExternalIdentity.objects.filter(person__user=call.row).order_by("issuer", "id"):
        actor = actor_of(call.request)
        identities.unlink(user=call.row, issuer=identity.issuer, **given, actor=actor, now=call.now)
    return f"{visible(call.row)} is not linked to an identity provider any more."


def shown(user: User) -> str:
    """Return the accounts that sign the user in, for the user's page."""
    rows = ExternalIdentity.objects.filter(person__user=user).order_by("issuer", "id")
    found = [f"{row.subject} at {row.issuer}, since {row.linked_at:%Y-%m-%d %H:%M} UTC" for row in rows]
    return "; ".join(found) or "none"
