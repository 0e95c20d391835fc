"""The page where people sign in."""

from typing import Any

from django.contrib.auth.views import LoginView
from django.http import HttpResponse

from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.people.doors import attempts


class SignInView(LoginView):
    """Django's page; each attempt is audited."""

    def form_valid(self, form: Any) -> HttpResponse:
        with environments.use(Environment.LIVE), environments.atomic():
            answer = super().form_valid(form)
            attempts.record_sign_in(self.request, now=now())
        return answer

    def form_invalid(self, form: Any) -> HttpResponse:
        account = form.cleaned_data.get("username")
        if account and "password" in form.cleaned_data:
            attempts.record_failure(self.request, account=account, now=now())
        return super().form_invalid(form)
