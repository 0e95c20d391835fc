"""The pages of one's own security keys: added and removed by somebody who has just proved who they are."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.views import RedirectURLMixin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from django.views.generic import FormView

from auditlog.actors.requests import actor_of
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from compliance.people.doors import guesses, pending, second_factor, sessions
from compliance.people.doors.second_factor import Factor
from compliance.people.errors import KeyRefused
from compliance.people.models import ChallengePurpose
from compliance.people.passkeys import challenges, keys, options, proofs, relying_party
from compliance.people.passkeys.proofs import StepForm
from compliance.people.passkeys.sign_in_pages import KeyRegistration
from compliance.people.signing_in import WRONG

NEW_CODES = "codes"


@require_POST
def request_options(request: HttpRequest) -> HttpResponse:
    """Answer what a key of the signed-in person shall sign."""
    user: Any = request.user
    return options.to_sign(request, user=user, purpose=ChallengePurpose.CONFIRM, now=now())


@require_POST
def creation_options(request: HttpRequest) -> HttpResponse:
    """Answer what a new key of the signed-in person shall make."""
    user: Any = request.user
    if proofs.is_needed(request, now()):
        return options.over()
    return options.to_create(request, user=user, now=now())


@require_POST
def change_keys(request: HttpRequest) -> HttpResponse:
    """Remove one of the person's keys, or make new recovery codes."""
    user: Any = request.user
    if proofs.is_needed(request, now()):
        messages.info(request, "Confirm that it is you, then do it again.")
        return proofs.ask_for_it(request)
    key_id = parse_id(request.POST.get("key"))
    try:
        if request.POST.get("do") == NEW_CODES:
            codes = second_factor.remake_codes(user=user, actor=actor_of(request), now=now())
            pending.keep(request, pending.CODES, "\n".join(codes))
            return HttpResponseRedirect(reverse("admin:recovery_codes"))
        if key_id is not None:
            kept = sessions.own_ids(request)
            keys.remove(user=user, key_id=key_id, keep=kept, actor=actor_of(request), now=now())
            messages.success(request, "The security key is removed.")
    except ServiceError as error:
        messages.error(request, f"{error.message}.")
    return HttpResponseRedirect(reverse("admin:account"))


class AddKeyView(KeyRegistration):
    """Adds a key to one's own account."""

    template_name = "admin/people/keys/add.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        user: Any = request.user
        self.user = user
        if relying_party.problem() is not None:
            return HttpResponseRedirect(reverse("admin:account"))
        if proofs.is_needed(request, now()):
            return proofs.ask_for_it(request)
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        common = {**admin.site.each_context(self.request), "title": "Add a security key or passkey"}
        return super().get_context_data(**common, **kwargs)

    def registered(self, next_url: str) -> HttpResponse:
        self.request.session[second_factor.SESSION_FLAG] = True
        pending.confirm(self.request, now())
        messages.success(self.request, "The security key is added.")
        return super().registered(next_url)


class ConfirmView(RedirectURLMixin, FormView):
    """Asks the signed-in person for a code or a security key."""

    form_class = StepForm
    template_name = "admin/people/keys/confirm.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if not proofs.is_needed(request, now()):
            return HttpResponseRedirect(self.get_success_url())
        return super().dispatch(request, *args, **kwargs)

    def get_default_redirect_url(self) -> str:
        return reverse("admin:account")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        user: Any = self.request.user
        context = {
            **admin.site.each_context(self.request),
            "title": "Confirm that it is you",
            "next": self.get_redirect_url(),
            "has_keys": keys.of(user).exists() and relying_party.problem() is None,
            "has_app": second_factor.authenticator_of(user) is not None,
        }
        return super().get_context_data(**context, **kwargs)

    def form_valid(self, form: StepForm) -> HttpResponse:
        user: Any = self.request.user
        answer = form.cleaned_data["credential"]
        proof = guesses.SECURITY_KEY if answer else guesses.CODE
        wait = guesses.wait_of(self.request, proof=proof, now=now())
        if wait is not None:
            form.add_error(None if answer else "code", wait)
            return self.form_invalid(form)
        details = self.shown_key(form, user, answer) if answer else self.shown_code(form, user)
        if details is None:
            return self.form_invalid(form)
        keys.record_confirmation(user=user, actor=actor_of(self.request), now=now(), **details)
        pending.confirm(self.request, now())
        return HttpResponseRedirect(self.get_success_url())

    def shown_code(self, form: StepForm, user: Any) -> dict[str, str] | None:
        factor = second_factor.verify(user=user, code=form.cleaned_data["code"], now=now())
        if factor is None:
            guesses.count(self.request, proof=guesses.CODE, now=now())
            form.add_error("code", WRONG)
            return None
        return {"second_factor": factor}

    def shown_key(self, form: StepForm, user: Any, answer: str) -> dict[str, str] | None:
        challenge = challenges.take(self.request, user=user, purpose=ChallengePurpose.CONFIRM, now=now())
        try:
            key = keys.use(user=user, answer=answer, challenge=challenge, now=now())
        except KeyRefused as error:
            guesses.count(self.request, proof=guesses.SECURITY_KEY, now=now(), **error.metadata)
            form.add_error(None, proofs.words_for(error))
            return None
        return {"second_factor": Factor.SECURITY_KEY, "security_key": str(key.id)}
