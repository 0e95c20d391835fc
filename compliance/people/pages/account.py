"""The page of one's own account: the second factor, its recovery codes, the sessions."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from auditlog.actors.requests import actor_of
from compliance.core.clock import now
from compliance.core.errors import ServiceError
from compliance.core.identifiers import parse_id
from compliance.core.wording import counted
from compliance.people.doors import guesses, pending, second_factor, sessions
from compliance.people.pages import single_sign_on
from compliance.people.passkeys import keys, proofs, relying_party
from compliance.people.signing_in import WRONG, CodeForm, Enrolment

NEW_CODES, REMOVE, ALL_OTHERS = "codes", "remove", "others"


def account_page(request: HttpRequest) -> HttpResponse:
    """Show the account; a POST with a code makes new recovery codes or removes the second factor."""
    user: Any = request.user
    form = CodeForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and (done := _changed(request, user, form)) is not None:
        return done
    authenticator = second_factor.authenticator_of(user)
    context = {
        **admin.site.each_context(request),
        "title": "Your account",
        "form": form,
        "authenticator": authenticator,
        "codes_left": user.person.recovery_codes.count(),
        "sessions": sessions.living(user, now()),
        "own_session": sessions.own_id(request),
        "security_keys": keys.of(user),
        "keys_problem": relying_party.problem(),
        "is_required": second_factor.is_required_of(user),
        **single_sign_on.context_of(user),
    }
    return TemplateResponse(request, "admin/people/account.html", context)


@require_POST
def end_sessions(request: HttpRequest) -> HttpResponse:
    """End one of the person's sessions, or all but this one."""
    user: Any = request.user
    wanted = request.POST.get("session")
    only = parse_id(wanted)
    if wanted == ALL_OTHERS or only is not None:
        but = sessions.own_ids(request)
        count = sessions.end(user=user, only=only, but=but, actor=actor_of(request), now=now())
        messages.success(request, f"{counted(count, 'session')} ended.")
    return HttpResponseRedirect(reverse("admin:account"))


def recovery_codes_page(request: HttpRequest) -> HttpResponse:
    """Show new recovery codes, once."""
    codes = pending.take(request, pending.CODES)
    if codes is None:
        messages.info(request, "Recovery codes are shown once. You can make new ones here.")
        return HttpResponseRedirect(reverse("admin:account"))
    context = {**admin.site.each_context(request), "title": "Keep these now", "codes": codes.split()}
    return TemplateResponse(request, "admin/people/recovery_codes.html", context)


class OwnEnrolment(Enrolment):
    """Adds an app to one's own account."""

    template_name = "admin/people/enrol.html"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        user: Any = request.user
        self.user = user
        if second_factor.authenticator_of(user) is not None:
            return HttpResponseRedirect(reverse("admin:account"))
        if proofs.is_needed(request, now()):
            return proofs.ask_for_it(request)
        return super().dispatch(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        common = {**admin.site.each_context(self.request), "title": "Set up an authenticator app"}
        return super().get_context_data(**common, **kwargs)

    def enrolled(self, next_url: str) -> HttpResponse:
        self.request.session[second_factor.SESSION_FLAG] = True
        return super().enrolled(next_url)


def _changed(request: HttpRequest, user: User, form: CodeForm) -> HttpResponse | None:
    """Do what was asked for; None if the code is wrong."""
    wanted = request.POST.get("do")
    if wanted not in {NEW_CODES, REMOVE}:
        return None
    wait = guesses.wait_of(request, proof=guesses.CODE, now=now())
    if wait is not None:
        form.add_error("code", wait)
        return None
    if second_factor.verify(user=user, code=form.cleaned_data["code"], now=now()) is None:
        guesses.count(request, proof=guesses.CODE, now=now())
        form.add_error("code", WRONG)
        return None
    try:
        if wanted == NEW_CODES:
            codes = second_factor.remake_codes(user=user, actor=actor_of(request), now=now())
            pending.keep(request, pending.CODES, "\n".join(codes))
            return HttpResponseRedirect(reverse("admin:recovery_codes"))
        kept = sessions.own_ids(request)
        second_factor.remove_app(
            user=user, reason="by the person", keep=kept, actor=actor_of(request), now=now()
        )
        messages.success(request, "The authenticator app is removed.")
    except ServiceError as error:
        messages.error(request, f"{error.message}.")
    return HttpResponseRedirect(reverse("admin:account"))
