"""An authenticated request, and what its key must hold: one scope for each action of a view."""

from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from compliance.api.gate import Credential, Scope, require_scope


class ApiRequest(Request):
    """A request whose `auth` is an API key; the type of `request` in every authenticated view."""

    auth: Credential


def credential_of(request: Request) -> Credential | None:
    """The API key behind any request; None where nobody authenticated."""
    found: Any = request.auth
    return found or None


class HasScope(BasePermission):
    """The key must hold `view.required_scopes[view.action]`; a view must name one for each action."""

    def has_permission(self, request: Request, view: Any) -> bool:
        key = credential_of(request)
        if key is None:
            return False
        # A method that the path has not: None, or "metadata" for OPTIONS; both end as a 405.
        if view.action not in (None, "metadata"):
            required: Scope = view.required_scopes[view.action]
            require_scope(key, required)
        return True
