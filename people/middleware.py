"""The console's frame around django-allauth's pages."""

from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin

from people import relying_party
from people.sso.pages import context_of

PAGES: Final = ("account_", "admin:link_password", "enrol_", "mfa_", "usersessions_")


class SignInPagesMiddleware(MiddlewareMixin):
    def process_template_response(self, request: HttpRequest, response: Any) -> Any:
        """Give the pages of `people.urls` and that of a one-time link what the admin gives to its own."""
        match = request.resolver_match
        if match and match.view_name.startswith(PAGES):
            user = request.user if request.user.is_authenticated else None
            frame = {
                **admin.site.each_context(request),
                **context_of(user),
                "title": "Your account",
                "keys_problem": relying_party.problem(),
            }
            # Unfold would lead from an object to its list in the admin.
            response.context_data = {**frame, **(response.context_data or {}), "object": None}
        return response
