"""The pages where people sign in: password, then the second factor, which those who need it set up here."""

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView, RedirectURLMixin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.generic import FormView
from unfold.widgets import UnfoldAdminTextInputWidget

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.people.doors import attempts, lockout, pending, second_factor, sessions, tries
from compliance.people.doors.second_factor import Factor
from compliance.people.errors import SecondFactorExists
from compliance.people.models import Person
from compliance.people.sso import marks
from compliance.people.sso.configuration import is_only_way

BACKEND: Final = "django.contrib.auth.backends.ModelBackend"
WRONG = "This code is wrong, or was used before."


class CodeForm(forms.Form):
    """A code of the authenticator app, or a recovery code."""

    code = forms.CharField(
        max_length=64,
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "autofocus": True, "spellcheck": "false"}
        ),
    )


def finish(
    request: HttpRequest, user: User, factor: Factor | None, next_url: str, **details: str
) -> HttpResponse:
    """Sign the user in, who has shown all that is needed, audit it with the `details`, and go on."""
    moment, person = now(), Person.objects.get(user=user)
    with environments.use(Environment.LIVE), environments.atomic():
        login(request, user)
        pending.end(request)
        request.session[second_factor.SESSION_FLAG] = factor is not None
        pending.confirm(request, moment if factor else None)
        sessions.begin(request, user=user, now=moment)
        lockout.count_success(request, person=person)
        more = {**details, **marks.facts(request)}
        attempts.record_sign_in(request, second_factor=factor, now=moment, **more)
    answer = HttpResponseRedirect(next_url)
    lockout.remember_browser(request, answer, person=person)
    return answer


def go_on(request: HttpRequest, user: User, next_url: str) -> HttpResponse:
    """Ask the user, who has shown the first factor, for the second; sign in who needs none."""
    enrolled = second_factor.is_set_up(user)
    if not enrolled and not second_factor.is_required_of(user):
        return finish(request, user, None, next_url)
    pending.begin(request, user, now())
    address = reverse("admin:login_code" if enrolled else "admin:login_enrol")
    return HttpResponseRedirect(f"{address}?{urlencode({'next': next_url})}")


class SignInView(LoginView):
    """Django's page for the password; each attempt is audited."""

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not is_only_way():
            return super().post(request, *args, **kwargs)
        # Before anything is compared with the password.
        account = request.POST.get("username", "")
        attempts.record_failure(request, account=account, password_is_off=True, now=now())
        messages.error(request, "Nobody signs in with a password here.")
        return HttpResponseRedirect(reverse("admin:login"))

    def form_valid(self, form: Any) -> HttpResponse:
        user: Any = form.get_user()
        if lockout.is_closed(self.request, username=user.username, now=now()):
            # In the words for a wrong password, which tell nothing of the account.
            form.add_error(None, form.get_invalid_login_error())
            attempts.record_failure(self.request, account=user.username, locked_out=True, now=now())
            return super().form_invalid(form)
        marks.end(self.request)
        return go_on(self.request, user, self.get_success_url())

    def form_invalid(self, form: Any) -> HttpResponse:
        account = form.cleaned_data.get("username")
        if account and "password" in form.cleaned_data:
            if not lockout.is_closed(self.request, username=account, now=now()):
                lockout.count_failure(self.request, username=account, now=now())
            attempts.record_failure(self.request, account=account, now=now())
        return super().form_invalid(form)


class SecondStep(RedirectURLMixin, FormView):
    """A page for somebody who has passed the first step and is not signed in yet."""

    form_class: type[forms.Form] = CodeForm
    user: User

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        user = pending.user_of(request, now())
        if user is None:
            return HttpResponseRedirect(reverse("admin:login"))
        self.user = user
        return super().dispatch(request, *args, **kwargs)

    def get_default_redirect_url(self) -> str:
        return reverse("admin:index")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(next=self.get_redirect_url(), **kwargs)

    def wait(self) -> str | None:
        """Return what is said while no code or key is looked at, and audit it; None if one is."""
        closed = tries.closed_for(self.user, now())
        # Not the account's door: who shows a code has shown the password.
        if closed is None and not lockout.is_closed(self.request, username="", now=now()):
            return None
        self.record("closed", locked_out=True)
        when = f"in {closed.seconds + 1} s" if closed else "later"
        return f"Too many wrong codes: try again {when}."

    def count_wrong(self, **more: Any) -> None:
        """Count a wrong code or key for the address as well, and audit it."""
        lockout.count_failure(self.request, username="", now=now())
        self.record("wrong", **more)

    def record(self, second_factor: str, **more: Any) -> None:
        given = {"account": self.user.username, "second_factor": second_factor, **more}
        attempts.record_failure(self.request, now=now(), **given)

    def refuse(self, form: CodeForm, message: str) -> HttpResponse:
        """Answer a wrong code."""
        self.count_wrong()
        form.add_error("code", message)
        return self.form_invalid(form)


class CodeView(SecondStep):
    """Asks for a code."""

    template_name = "admin/people/sign_in_code.html"

    def form_valid(self, form: CodeForm) -> HttpResponse:
        wait = self.wait()
        if wait is not None:
            form.add_error("code", wait)
            return self.form_invalid(form)
        factor = second_factor.verify(user=self.user, code=form.cleaned_data["code"], now=now())
        if factor is None:
            return self.refuse(form, WRONG)
        return finish(self.request, self.user, factor, self.get_success_url())


class Enrolment(FormView):
    """Shows a new secret, kept in the session until a code proves that an app has it."""

    form_class: type[forms.Form] = CodeForm
    is_first = False
    user: User

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        secret = self.secret()
        image, text = second_factor.as_qr_code(secret, self.user), second_factor.as_text(secret)
        return super().get_context_data(qr_code=image, secret=text, **kwargs)

    def secret(self) -> bytes:
        found = pending.kept(self.request, pending.SECRET)
        if found is not None:
            return bytes.fromhex(found)
        secret = second_factor.new_secret()
        pending.keep(self.request, pending.SECRET, secret.hex())
        return secret

    def form_valid(self, form: CodeForm) -> HttpResponse:
        code, secret = "".join(form.cleaned_data["code"].split()), self.secret()
        step = second_factor.step_of(code, secret, after=0, now=now())
        if step is None:
            return self.refuse(form, "This is not the code that the app shows now.")
        actor = Actor.person(Person.objects.get(user=self.user).id)
        try:
            codes = second_factor.enrol(
                user=self.user, secret=secret, step=step, is_first=self.is_first, actor=actor, now=now()
            )
        except SecondFactorExists as error:
            return self.refuse(form, f"{error.message}.")
        answer = self.enrolled(reverse("admin:recovery_codes"))
        pending.take(self.request, pending.SECRET)
        pending.keep(self.request, pending.CODES, "\n".join(codes))
        return answer

    def enrolled(self, next_url: str) -> HttpResponse:
        """Go on after the app was added."""
        return HttpResponseRedirect(next_url)

    def refuse(self, form: CodeForm, message: str) -> HttpResponse:
        form.add_error("code", message)
        return self.form_invalid(form)


class EnrolView(SecondStep, Enrolment):
    """Sets up the second factor of somebody who may not sign in without one."""

    template_name = "admin/people/sign_in_enrol.html"
    is_first = True

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        user = pending.user_of(request, now())
        if user is not None and second_factor.is_set_up(user):
            return HttpResponseRedirect(reverse("admin:login_code"))
        return super().dispatch(request, *args, **kwargs)

    def enrolled(self, next_url: str) -> HttpResponse:
        return finish(self.request, self.user, Factor.APP, next_url)

    def refuse(self, form: CodeForm, message: str) -> HttpResponse:
        return Enrolment.refuse(self, form, message)
