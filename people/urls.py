"""django-allauth's pages of signing in, at the console's addresses; it has no others."""

from typing import Any

from allauth.account import views as account
from django.contrib import admin
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.generic import RedirectView

from auditlog.actors.requests import actor_of
from compliance.core.clock import now
from people.doors.enrolment import FirstAppView, FirstKeyView
from people.recording import recorded_changes
from people.sso import flow
from people.sso.pages import leaving


def sign_in(request: HttpRequest) -> HttpResponse:
    """Show django-allauth's page; who is signed in and needs more for the console begins anew."""
    if request.user.is_authenticated and not admin.site.has_permission(request):
        logout(request)
    answer: HttpResponse = account.login(request)
    return answer


def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out, and at the identity provider as well where it offers that."""
    farewell = flow.farewell(request) if request.method == "POST" else None
    answer: HttpResponse = account.logout(request)
    return leaving(request, farewell) if farewell else answer


def change_password(request: HttpRequest) -> Any:
    """Let people change their own password, audited."""
    if request.method != "POST" or not request.user.is_authenticated:
        return account.password_change(request)
    with recorded_changes(user_id=request.user.pk, actor=actor_of(request), now=now()):
        return account.password_change(request)


urlpatterns = [
    path("login/", sign_in, name="account_login"),
    path("login/enrol/", FirstAppView.as_view(), name="enrol_app"),
    path("login/enrol/key/", FirstKeyView.as_view(), name="enrol_key"),
    path("login/again/", account.reauthenticate, name="account_reauthenticate"),
    path("logout/", sign_out, name="account_logout"),
    path("password_change/", change_password, name="account_change_password"),
    # Who has none signs in with the identity provider alone.
    path("account/password/", RedirectView.as_view(pattern_name="mfa_index"), name="account_set_password"),
    path("account/", include("allauth.mfa.urls")),
    path("account/sessions/", include("allauth.usersessions.urls")),
]
