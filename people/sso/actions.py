"""What operators do to a person's single sign-on, on the user's page."""

from django import forms
from django.contrib.auth.models import User
from unfold.widgets import UnfoldAdminTextInputWidget

from auditlog.actors.requests import actor_of
from compliance.console.access import OPERATORS
from compliance.console.actions import ActionCall, ConfirmedAction, ReasonForm
from compliance.console.display import visible
from people.models import ExternalIdentity
from people.sso import identities
from people.sso.configuration import sign_on
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


def link(call: ActionCall) -> str:
    config = sign_on()
    if config is None:
        return "Single sign-on is off."
    identities.link(
        user=call.row,
        issuer=config.issuer,
        subject=call.data["subject"],
        via="operator",
        actor=actor_of(call.request),
        now=call.now,
    )
    return f"{config.label} signs {visible(call.row)} in from now on."


def unlink(call: ActionCall) -> str:
    for identity in ExternalIdentity.objects.filter(person__user=call.row).order_by("issuer", "id"):
        identities.unlink(
            user=call.row,
            issuer=identity.issuer,
            reason=call.data["reason"],
            by_person=False,
            actor=actor_of(call.request),
            now=call.now,
        )
    return f"{visible(call.row)} is not linked to an identity provider any more."


def shown(user: User) -> str:
    """Return the accounts that sign the user in, for the user's page."""
    rows = ExternalIdentity.objects.filter(person__user=user).order_by("issuer", "id")
    found = [f"{row.subject} at {row.issuer}, since {row.linked_at:%Y-%m-%d %H:%M} UTC" for row in rows]
    return "; ".join(found) or "none"


def _may_be_linked(user: User) -> bool:
    config = sign_on()
    return config is not None and identities.identity_of(user, config.issuer) is None


LINK = ConfirmedAction(
    name="link_sign_on",
    label="Link single sign-on",
    icon="link",
    explanation=(
        "Lets an account of the identity provider sign in as this person. Take its id from the provider, not "
        "from who asks."
    ),
    run=link,
    is_offered=_may_be_linked,
    roles=OPERATORS,
    form_class=SubjectForm,
)
UNLINK = ConfirmedAction(
    name="unlink_sign_on",
    label="Unlink single sign-on",
    icon="link_off",
    explanation="The account of the provider does not sign in as this person any more. Sessions go on.",
    run=unlink,
    is_offered=lambda user: ExternalIdentity.objects.filter(person__user=user).exists(),
    roles=OPERATORS,
    form_class=ReasonForm,
    is_destructive=True,
)
