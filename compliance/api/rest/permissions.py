"""What an API key may do: one scope for each action of a view."""

from enum import StrEnum
from typing import Any

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from compliance.api.gate import require_scope
from compliance.api.rest.requests import credential_of


class Scope(StrEnum):
    """The permissions a key can hold; the value is what people write."""

    AGENTS_READ = "agents:read"
    AGENTS_WRITE = "agents:write"
    CERTIFICATES_ISSUE = "certificates:issue"
    CERTIFICATES_REVOKE = "certificates:revoke"
    EVENTS_READ = "events:read"
    EVENTS_WRITE = "events:write"
    EVENTS_REVIEW = "events:review"
    DELEGATIONS_ISSUE = "delegations:issue"
    DELEGATIONS_READ = "delegations:read"
    DELEGATIONS_REVOKE = "delegations:revoke"
    TOKENS_INTROSPECT = "tokens:introspect"
    ISSUERS_READ = "issuers:read"
    ISSUERS_WRITE = "issuers:write"
    MESSAGES_SIGN = "messages:sign"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"
    SIGNALS_READ = "signals:read"
    SIGNALS_WRITE = "signals:write"
    AUDIT_READ = "audit:read"
    REPORTS_READ = "reports:read"
    REPORTS_WRITE = "reports:write"
    INCIDENTS_READ = "incidents:read"
    INCIDENTS_WRITE = "incidents:write"
    GATEWAY_AUTHORIZE = "gateway:authorize"
    GATEWAY_READ = "gateway:read"
    GATEWAY_WRITE = "gateway:write"


def scope_choices() -> list[tuple[str, str]]:
    """Return every scope as a choice; as a function, so that a new scope needs no migration."""
    return [(scope.value, scope.value) for scope in Scope]


class HasScope(BasePermission):
    """The key must hold `view.required_scopes[view.action]`; a view must name one for each action."""

    def has_permission(self, request: Request, view: Any) -> bool:
        key = credential_of(request)
        if key is None:
            return False
        # A method that the path has not: None, or "metadata" for OPTIONS; both end as a 405.
        if view.action in (None, "metadata"):
            return True
        required: Scope = view.required_scopes[view.action]
        require_scope(key, required)
        return True
