"""Chooses the environment of every request before anything touches a row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from compliance.api import gate
from compliance.api.gate import GateRequest
from compliance.api.rest.views import is_public
from compliance.console.access import ConsoleAccess, ConsoleRole
from compliance.console.addresses import CONSOLE_PREFIX, environment_of_path
from compliance.core import environments
from compliance.core.environments import Environment
from people.doors.second_factor import is_met
from tenancy import keys
from tenancy.models import Membership


@dataclass(frozen=True)
class EnvironmentMiddleware:
    """The key's prefix decides for the API, the path for the console; all else starts as live.

    A public view starts in none: it answers of things whose environment is read from themselves, and whatever
    key was sent along has no say. What it touches outside `environments.use()` fails for every caller alike.
    """

    get_response: Callable[[HttpRequest], HttpResponse]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(CONSOLE_PREFIX):
            access = console_access(request)
            request.console = access  # type: ignore[attr-defined]
            environment = access.environment
        else:
            environment = (
                keys.environment_of(gate.bearer_token(GateRequest.of(request)) or "") or Environment.LIVE
            )
        with environments.use(environment):
            return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> None:
        if is_public(view):
            environments.leave()


def console_access(request: HttpRequest) -> ConsoleAccess:
    """Return what the signed-in user may see: all as a superuser, else by their memberships; else nothing."""
    user = request.user
    environment = environment_of_path(request.path) or Environment.LIVE
    if not user.is_active or not user.is_staff or not is_met(request):
        return ConsoleAccess(environment, is_stranger=True)
    if user.is_superuser:
        return ConsoleAccess(environment, is_operator=True)
    memberships = Membership.objects.filter(user=user)
    roles = {membership.tenant_id: ConsoleRole(membership.role) for membership in memberships}
    return ConsoleAccess(environment, roles)
