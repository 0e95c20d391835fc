"""The pages behind a one-time link, where somebody who is not signed in sets a password."""

from typing import Any, Final

from allauth.account.utils import perform_login
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.generic import FormView
from unfold.forms import AdminPasswordChangeForm

from compliance.core.clock import now
from people.doors import attempts, links
from people.doors.links import LinkIsOver

LINK: Final = "one_time_link"
OVER: Final = {"one_time_link": "over"}
"""How the audit log tells of a link that is over, or never was: somebody else may have used it."""


class NewPasswordForm(AdminPasswordChangeForm):
    """A new password, twice; it cannot be done without."""

    usable_password = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.required = True


def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Keep the link's token in the session, so that no address shows it, and go to the form.

    A guess is not kept: strangers could fill the table of sessions.
    """
    if links.find(token, now()) is None:
        attempts.record_failure(request, account="", **OVER, now=now())
    else:
        # Who knew the session before must not set the password with it.
        request.session.cycle_key()
        request.session[LINK] = token
    return HttpResponseRedirect(reverse("admin:link_password"))


@method_decorator([never_cache, csrf_protect], name="dispatch")
class LinkPasswordView(FormView):
    """Sets the password of the person whose link was opened."""

    form_class = NewPasswordForm
    template_name = "admin/people/link_password.html"
    token: str
    user: User

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        self.token = request.session.get(LINK, "")
        link = links.find(self.token, now())
        if link is None:
            return self.over()
        self.user = link.person.user
        self.extra_context = {"title": "Your password", "username": self.user.username}
        if link.signs_in and request.method == "POST":
            return self.sign_in()
        if link.signs_in or settings.OIDC_ONLY:
            # Without a form for a password.
            page = "enter" if link.signs_in else "invitation"
            return TemplateResponse(request, f"admin/people/sso/{page}.html", self.extra_context)
        return super().dispatch(request, *args, **kwargs)

    def sign_in(self) -> HttpResponse:
        try:
            user: Any = links.spend(token=self.token, signs_in=True, now=now())
        except LinkIsOver:
            return self.over()
        logout(self.request)
        answer: HttpResponse = perform_login(self.request, user)
        return answer

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "user": self.user}

    def form_valid(self, form: Any) -> HttpResponse:
        try:
            links.use(token=self.token, password=form.cleaned_data["password1"], now=now())
        except LinkIsOver:
            return self.over()
        del self.request.session[LINK]
        messages.success(self.request, "Your password is set. Sign in with it.")
        return HttpResponseRedirect(reverse("admin:login"))

    def over(self) -> HttpResponse:
        if self.token:
            attempts.record_failure(self.request, account="", **OVER, now=now())
        messages.error(self.request, "This link was used, replaced or is too old. Ask for a new one.")
        return HttpResponseRedirect(reverse("admin:login"))
