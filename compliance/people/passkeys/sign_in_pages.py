"""The pages where security keys sign people in, or are registered by those who need a second factor."""

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from django.views.generic import FormView
from unfold.widgets import UnfoldAdminTextInputWidget

from auditlog.vocabulary import Actor
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from compliance.people.doors import pending, second_factor
from compliance.people.doors.second_factor import Factor
from compliance.people.errors import KeyRefused
from compliance.people.models import ChallengePurpose, Person
from compliance.people.passkeys import challenges, keys, options, proofs, relying_party
from compliance.people.passkeys.ceremonies import LONGEST_ANSWER
from compliance.people.passkeys.proofs import NOT_ACCEPTED, StepForm
from compliance.people.signing_in import CodeForm, CodeView, EnrolView, SecondStep, finish


@require_POST
def request_options(request: HttpRequest) -> HttpResponse:
    """Answer what a key of the person who is signing in shall sign."""
    user = pending.user_of(request, now())
    if user is None:
        return options.over()
    return options.to_sign(request, user=user, purpose=ChallengePurpose.SIGN_IN, now=now())


@require_POST
def creation_options(request: HttpRequest) -> HttpResponse:
    """Answer what a new key of the person who is signing in shall make."""
    user = pending.user_of(request, now())
    if user is None or second_factor.is_set_up(user):
        return options.over()
    return options.to_create(request, user=user, now=now())


class StepView(CodeView):
    """Asks for a code or a security key."""

    form_class = StepForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        has_keys = keys.of(self.user).exists() and relying_party.problem() is None
        has_app = second_factor.authenticator_of(self.user) is not None
        return super().get_context_data(has_keys=has_keys, has_app=has_app, **kwargs)

    def form_valid(self, form: CodeForm) -> HttpResponse:
        answer = form.cleaned_data["credential"]
        if not answer:
            return super().form_valid(form)
        wait = self.wait()
        if wait is not None:
            form.add_error(None, wait)
            return self.form_invalid(form)
        challenge = challenges.take(self.request, user=self.user, purpose=ChallengePurpose.SIGN_IN, now=now())
        try:
            key = keys.use(user=self.user, answer=answer, challenge=challenge, now=now())
        except KeyRefused as error:
            self.count_wrong(**error.metadata)
            form.add_error(None, proofs.words_for(error))
            return self.form_invalid(form)
        return finish(
            self.request, self.user, Factor.SECURITY_KEY, self.get_success_url(), security_key=str(key.id)
        )


class EnrolAppView(EnrolView):
    """Sets up an app, and leads to the page that registers a key instead."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(keys_problem=relying_party.problem(), **kwargs)


class KeyForm(forms.Form):
    """The name of a new key, and its answer, which a script puts in."""

    name = forms.CharField(
        label="Name",
        max_length=64,
        initial="Security key",
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True, "autocomplete": "off"}),
        help_text="How you tell it from others, such as: blue key, work laptop.",
    )
    credential = forms.CharField(
        max_length=LONGEST_ANSWER,
        widget=forms.HiddenInput,
        error_messages={
            "required": "Your browser sent no key. Registering one needs JavaScript.",
            "max_length": NOT_ACCEPTED,
        },
    )


class KeyRegistration(FormView):
    """Registers a new key of `user`; if `is_first`, only while there is no second factor."""

    form_class: type[forms.Form] = KeyForm
    is_first = False
    request: HttpRequest
    user: User

    def form_valid(self, form: KeyForm) -> HttpResponse:
        actor = Actor.person(Person.objects.get(user=self.user).id)
        challenge = challenges.take(
            self.request, user=self.user, purpose=ChallengePurpose.REGISTER, now=now()
        )
        try:
            codes = keys.register(
                user=self.user,
                name=form.cleaned_data["name"],
                answer=form.cleaned_data["credential"],
                challenge=challenge,
                is_first=self.is_first,
                actor=actor,
                now=now(),
            )
        except KeyRefused as error:
            keys.record_refusal(self.request, user=self.user, refusal=error, actor=actor, now=now())
            form.add_error(None, proofs.words_for(error))
            return self.form_invalid(form)
        except ServiceError as error:
            form.add_error(None, f"{error.message}.")
            return self.form_invalid(form)
        answer = self.registered(reverse("admin:recovery_codes" if codes else "admin:account"))
        if codes:
            pending.keep(self.request, pending.CODES, "\n".join(codes))
        return answer

    def registered(self, next_url: str) -> HttpResponse:
        """Go on after the key was added."""
        return HttpResponseRedirect(next_url)


class EnrolKeyView(SecondStep, KeyRegistration):
    """Registers the first key of somebody who may not sign in without a second factor."""

    form_class: type[forms.Form] = KeyForm
    template_name = "admin/people/keys/sign_in_enrol.html"
    is_first = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        user = pending.user_of(request, now())
        if user is not None and second_factor.is_set_up(user):
            return HttpResponseRedirect(reverse("admin:login_code"))
        if relying_party.problem() is not None:
            return HttpResponseRedirect(reverse("admin:login_enrol"))
        return super().dispatch(request, *args, **kwargs)

    def registered(self, next_url: str) -> HttpResponse:
        return finish(self.request, self.user, Factor.SECURITY_KEY, next_url)
