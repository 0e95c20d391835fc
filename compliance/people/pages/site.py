"""The console's site: Unfold's, with doors that are audited."""

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.generic import View

from auditlog.actors.requests import actor_of
from compliance.core.clock import now
from compliance.people.doors import attempts, guesses, lockout, second_factor
from compliance.people.pages import account, link_pages, single_sign_on
from compliance.people.passkeys import own_pages, sign_in_pages
from compliance.people.recording import recorded_changes
from compliance.people.signing_in import SignInView
from compliance.people.sso import marks
from compliance.people.sso.configuration import sign_on

if TYPE_CHECKING:  # Unfold carries no types; its classes extend Django's.
    from django.contrib.admin import AdminSite as UnfoldAdminSite
else:
    from unfold.sites import UnfoldAdminSite


class ConsoleSite(UnfoldAdminSite):
    """Signing in and out, and changing one's own password."""

    @method_decorator(never_cache)
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        context = {**self.each_context(request), "title": "Sign in", "app_path": request.get_full_path()}
        context |= single_sign_on.context_of()
        if REDIRECT_FIELD_NAME not in {*request.GET, *request.POST}:
            context[REDIRECT_FIELD_NAME] = reverse("admin:index")
        request.current_app = self.name
        view = SignInView.as_view(
            authentication_form=self.login_form,
            template_name="admin/login.html",
            extra_context={**context, **(extra_context or {})},
        )
        return view(request)

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and second_factor.is_met(request)

    def get_urls(self) -> list[Any]:
        return [
            path("login/code/", self._outside(sign_in_pages.StepView, "Second step"), name="login_code"),
            path("login/key/", never_cache(sign_in_pages.request_options), name="login_key"),
            path(
                "login/enrol/key/",
                self._outside(sign_in_pages.EnrolKeyView, "Second step"),
                name="login_enrol_key",
            ),
            path(
                "login/enrol/key/options/",
                never_cache(sign_in_pages.creation_options),
                name="login_enrol_key_options",
            ),
            path(
                "login/enrol/", self._outside(sign_in_pages.EnrolAppView, "Second step"), name="login_enrol"
            ),
            # Before the links, one of which it would be.
            path("join/sso/", single_sign_on.accept_invitation, name="sso_invitation"),
            path("join/<str:token>/", never_cache(link_pages.open_link), name="link"),
            path("join/", self._outside(link_pages.LinkPasswordView, "Your password"), name="link_password"),
            path("login/sso/", single_sign_on.begin, name="sso_begin"),
            path("login/sso/callback/", single_sign_on.callback, name="sso_callback"),
            path("account/sso/", self.admin_view(single_sign_on.own_identity), name="account_sso"),
            path("account/", self.admin_view(account.account_page), name="account"),
            path("account/sessions/", self.admin_view(account.end_sessions), name="account_sessions"),
            path("account/enrol/", self.admin_view(account.OwnEnrolment.as_view()), name="account_enrol"),
            path(
                "account/confirm/", self.admin_view(own_pages.ConfirmView.as_view()), name="account_confirm"
            ),
            path("account/key/", self.admin_view(own_pages.request_options), name="account_key"),
            path("account/keys/", self.admin_view(own_pages.change_keys), name="account_keys"),
            path(
                "account/keys/add/", self.admin_view(own_pages.AddKeyView.as_view()), name="account_key_add"
            ),
            path(
                "account/keys/add/options/",
                self.admin_view(own_pages.creation_options),
                name="account_key_add_options",
            ),
            path("account/codes/", self.admin_view(account.recovery_codes_page), name="recovery_codes"),
            # Django's redirect to any row's own page is not there: it tells which rows of all tenants exist.
            *(route for route in super().get_urls() if getattr(route, "name", None) != "view_on_site"),
        ]

    def _outside(self, view: type[View], title: str) -> Any:
        """Return a page for people who are not signed in yet."""

        def shown(request: HttpRequest) -> Any:
            context = {**self.each_context(request), **single_sign_on.context_of(), "title": title}
            return view.as_view(extra_context=context)(request)

        return never_cache(csrf_protect(shown))

    @method_decorator(never_cache)
    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if request.method == "POST" and request.user.is_authenticated:
            attempts.record_sign_out(request, now=now())
        farewell, config = marks.farewell(request) if request.method == "POST" else None, sign_on()
        answer = super().logout(request, extra_context)
        if farewell and config and not request.user.is_authenticated:
            return single_sign_on.leaving(request, farewell, config.label)
        return answer

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        if request.method != "POST":
            return super().password_change(request, extra_context)
        wait = guesses.wait_of(request, proof=guesses.PASSWORD, now=now())
        if wait is not None:
            messages.error(request, wait)
            return HttpResponseRedirect(reverse("admin:password_change"))
        user: Any = request.user
        with recorded_changes(user_id=user.pk, actor=actor_of(request), now=now()):
            answer: Any = super().password_change(request, extra_context)
        if isinstance(answer, HttpResponseRedirect):
            lockout.count_success(request, person=user.person)
        elif answer.context_data["form"].has_error("old_password", "password_incorrect"):
            guesses.count(request, proof=guesses.PASSWORD, now=now())
        return answer
