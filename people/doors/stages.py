"""The steps between the first factor and the session, in django-allauth's order of stages."""

from typing import Any

from allauth.account.stages import LoginStage
from allauth.mfa.stages import AuthenticateStage
from django.contrib.auth.models import User
from django.http import HttpResponseRedirect
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from people.doors.second_factor import has_second_factor, is_required_of, shown_factor


class OurStage(LoginStage):
    """A stage that the sign-in page does not lead back to: there somebody else may begin."""

    def is_resumable(self, request: Any) -> bool:
        return False


class FirstFactorStage(LoginStage):
    """Changes the session's key before a secret is shown, so that a key known to others shows nothing."""

    key = "first_factor"

    def handle(self) -> tuple[Any, bool]:
        self.request.session.cycle_key()
        self.login.state["hash"] = self.login.user.get_session_auth_hash()
        return None, True


class SecondFactorStage(OurStage, AuthenticateStage):
    """Asks for the second factor, unless the identity provider has."""

    def _should_handle(self, request: Any) -> bool:
        return shown_factor(request, self.login.user) is None and super()._should_handle(request)


class EnrolmentStage(OurStage):
    """Has those who need a second factor and have none set one up."""

    key = "enrolment"
    urlname = "enrol_app"

    def handle(self) -> tuple[Any, bool]:
        user = self.login.user
        if has_second_factor(user) or not is_required_of(user) or shown_factor(self.request, user):
            return None, True
        return HttpResponseRedirect(reverse(self.urlname)), True


class StillValidStage(LoginStage):
    """Ends the sign-in of somebody who was deactivated or got a new password meanwhile."""

    key = "still_valid"

    def handle(self) -> tuple[Any, bool]:
        user = User.objects.filter(pk=self.login.user.pk, is_active=True, is_staff=True).first()
        is_same = user and constant_time_compare(self.login.state["hash"], user.get_session_auth_hash())
        return (None, True) if is_same else (HttpResponseRedirect(reverse("account_login")), False)
