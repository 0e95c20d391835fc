"""Chooses the environment of every request before anything touches a row."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from compliance import environments
from compliance.console import ConsoleAccess
from compliance.environments import Environment
from compliance.tenancy import keys
from compliance.tenancy.authentication import bearer_token
from compliance.tenancy.models import Membership

SESSION_KEY = "environment"
CONSOLE_PREFIX = "/admin/"


class EnvironmentMiddleware:
    """The key's prefix decides for the API, the session for the console; all else starts as live."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(CONSOLE_PREFIX):
            environment = console_environment(request)
            request.console = console_access(request, environment)  # type: ignore[attr-defined]
        else:
            environment = keys.environment_of(bearer_token(request) or "") or Environment.LIVE
        with environments.use(environment):
            return self.get_response(request)


def console_environment(request: HttpRequest) -> Environment:
    """The environment the console session shows."""
    is_test = request.session.get(SESSION_KEY) == Environment.TEST
    return Environment.TEST if is_test else Environment.LIVE


def console_access(request: HttpRequest, environment: Environment) -> ConsoleAccess:
    """What the signed-in user may see: all as a superuser, else the tenants of their memberships."""
    user = request.user
    if not user.is_active or not user.is_staff:
        return ConsoleAccess(environment, frozenset(), "")
    if user.is_superuser:
        return ConsoleAccess(environment, None, "operator")
    memberships = list(Membership.objects.filter(user=user))
    roles = {membership.role for membership in memberships}
    role = next((role for role in ("officer", "auditor", "developer") if role in roles), "")
    tenants = frozenset(membership.tenant_id for membership in memberships)
    return ConsoleAccess(environment, tenants, role)
