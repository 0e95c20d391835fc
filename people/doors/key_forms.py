"""django-allauth's forms of one's own password and of security keys, with hostile answers refused."""

import json
import struct
from contextlib import suppress
from typing import Any, Final

from allauth.account.adapter import get_adapter
from allauth.account.forms import ChangePasswordForm
from allauth.core import context
from allauth.mfa.models import Authenticator
from allauth.mfa.webauthn.forms import AddWebAuthnForm, AuthenticateWebAuthnForm
from allauth.mfa.webauthn.internal import auth
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from django import forms
from unfold.widgets import UnfoldAdminTextInputWidget

from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from people import relying_party
from people.doors import attempts

LONGEST_ANSWER: Final = 16_384
"""In characters of JSON: an RSA key with its attestation takes about 2,000."""
RS256, SMALLEST_RSA = -257, 2048 // 8
NOT_ACCEPTED: Final = "This security key was not accepted. Try again, or use a code."
# What fido2 lets through when an answer is broken.
_BROKEN: Final = (
    *(
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        NotImplementedError,
    ),
    *(struct.error, InvalidSignature, UnsupportedAlgorithm),
)


class KeyAnswerField(forms.CharField):
    """What a browser's script says that a key has answered: a JSON object."""

    widget = forms.HiddenInput

    def __init__(self) -> None:
        too_long, none = NOT_ACCEPTED, "Your browser sent no key. Using one needs JavaScript."
        super().__init__(max_length=LONGEST_ANSWER, error_messages={"max_length": too_long, "required": none})

    def clean(self, value: Any) -> Any:
        try:
            found = json.loads(super().clean(value))
        except (ValueError, RecursionError):
            found = None
        if not found or not isinstance(found, dict):
            raise forms.ValidationError(NOT_ACCEPTED)
        return found


class AddKeyForm(AddWebAuthnForm):
    name = forms.CharField(
        label="Name",
        max_length=64,
        initial="Security key",
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True, "autocomplete": "off"}),
        help_text="How you tell it from others, such as: blue key, work laptop.",
    )
    credential = KeyAnswerField()

    def clean(self) -> Any:
        try:
            answer = self.cleaned_data.get("credential")
            if answer:
                made = auth.parse_registration_response(answer)
                _check_origin(made)
                public = made.response.attestation_object.auth_data.credential_data.public_key
                if public[3] == RS256 and len(public[-1]) < SMALLEST_RSA:
                    raise ValueError("weak")
                # No signature was verified yet: a key that cannot do so at all raises another error.
                with suppress(InvalidSignature):
                    public.verify(b"", b"")
            return super().clean()
        except (*_BROKEN, forms.ValidationError) as error:
            if _is_first_time():
                person, text = self.user.person, f"Security key of {self.user.username} refused"
                address = {"address": attempts.address_of(context.request)}
                action, actor = AuditAction.PERSON_SECURITY_KEY_REFUSED, Actor.person(person.id)
                attempts.record_bounded(action, person, text, address, actor, now())
            raise forms.ValidationError(NOT_ACCEPTED) from error


class SignInKeyForm(AuthenticateWebAuthnForm):
    credential = KeyAnswerField()

    def clean_credential(self) -> Authenticator:
        answer = self.cleaned_data["credential"]
        try:
            shown = auth.parse_authentication_response(answer)
            _check_origin(shown)
            authenticator: Authenticator = super().clean_credential()
            _go_on_counting(authenticator, shown.response.authenticator_data.counter)
            return authenticator
        except (*_BROKEN, forms.ValidationError) as error:
            if _is_first_time():
                attempts.record_wrong_factor(
                    context.request, user=self.user, is_signed_in=self.reauthenticated, now=now()
                )
            raise forms.ValidationError(NOT_ACCEPTED) from error


class ConfirmKeyForm(SignInKeyForm):
    reauthenticated = True


def _is_first_time() -> bool:
    """Whether the request's answer was not refused before: django-allauth checks it again for the page."""
    notes = vars(context.request.allauth)
    return not notes.get("key_refused") and bool(notes.setdefault("key_refused", True))


def _check_origin(answer: Any) -> None:
    """Raise ValueError for another origin than the console's: fido2 takes all sub-domains and ports."""
    if answer.response.client_data.origin != relying_party.current().origin:
        raise ValueError("another origin")


def _go_on_counting(authenticator: Authenticator, count: int) -> None:
    """Raise ValueError where the key's counter goes back, as a copy's does (WebAuthn §6.1.1); else keep it.

    Keys without a counter say 0 for ever.
    """
    with environments.use(Environment.LIVE), environments.atomic():
        kept = Authenticator.objects.select_for_update().filter(pk=authenticator.pk).first()
        if kept is None:
            raise ValueError("removed")
        known = kept.data.get("sign_count")
        if known is None:
            known = kept.wrap().authenticator_data.counter
        if (count or known) and count <= known:
            raise ValueError("counter")
        kept.data["sign_count"] = count
        kept.save(update_fields=["data"])


class OwnPasswordForm(ChangePasswordForm):
    """A person's new password; the current one is no easier to guess than at the sign-in."""

    def clean_oldpassword(self) -> str:
        adapter, shown = get_adapter(), self.cleaned_data.get("oldpassword", "")
        if not adapter.reauthenticate(self.user, shown):
            raise adapter.validation_error("enter_current_password")
        return str(shown)
