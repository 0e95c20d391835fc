"""Proof that it is still the person who signed in: a code or a security key, not older than ten minutes."""

from datetime import datetime
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode

from compliance.people.doors import pending, second_factor
from compliance.people.errors import KeyRefused
from compliance.people.passkeys import keys
from compliance.people.passkeys.ceremonies import LONGEST_ANSWER
from compliance.people.signing_in import CodeForm

WORDS: Final = {
    keys.CHALLENGE: "This took too long, or another tab of yours asked as well. Try again.",
    keys.UNKNOWN: "This security key is not registered for this account.",
    keys.COUNTER: (
        "This security key was refused: its counter went back, as that of a copy would. "
        "Use another way, and tell an operator."
    ),
    keys.CLOSED: "Too many wrong codes or keys: wait, then try again.",
}
NOT_ACCEPTED: Final = "This security key was not accepted. Try again, or use a code."


class StepForm(CodeForm):
    """A code, or the answer of a security key that a script puts in."""

    credential = forms.CharField(
        required=False,
        max_length=LONGEST_ANSWER,
        widget=forms.HiddenInput,
        error_messages={"max_length": NOT_ACCEPTED},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Whichever is missing, the other was meant.
        self.fields["code"].required = not self.data.get("credential")


def words_for(refusal: KeyRefused) -> str:
    """Return what a person is told of a refused security key."""
    return WORDS.get(refusal.why, NOT_ACCEPTED)


def is_needed(request: HttpRequest, now: datetime) -> bool:
    """Whether the request's user has a second factor, and has not shown it lately."""
    user: Any = request.user
    return second_factor.is_set_up(user) and not pending.is_confirmed(request, now)


def ask_for_it(request: HttpRequest) -> HttpResponse:
    """Send the user to the page that asks for a proof, and back to this one or to the account."""
    back = request.path if request.method == "GET" else reverse("admin:account")
    return HttpResponseRedirect(f"{reverse('admin:account_confirm')}?{urlencode({'next': back})}")
