"""Limits requests without a valid credential by client address, before their view runs.

Public views count their callers themselves, and a valid key counts in its own bucket. Everything else is
counted here by the client's address: missing and wrong keys, unknown paths and hosts, and the console's pages
for those who are not signed in. A key that this process found valid when it last looked passes whatever its
neighbours behind the same address do.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse

from compliance.api import gate, unauthenticated
from compliance.api.exceptions import error_response
from compliance.api.gate import GateRequest
from compliance.api.rest.views import LimitedView, is_public
from compliance.console.access import access_of
from compliance.console.addresses import CONSOLE_PREFIX
from tenancy import keys, recent_keys

host_log = logging.getLogger("django.security.DisallowedHost")


@dataclass(frozen=True)
class AdmissionMiddleware:
    """Refuses those who have used up their requests before their view runs, counts the others after it."""

    get_response: Callable[[HttpRequest], HttpResponse]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            request.get_host()
        except DisallowedHost:
            host_log.warning("host %r is not one of ALLOWED_HOSTS", request.META.get("HTTP_HOST", "")[:100])
            return _with_limit(request, error_response(request, 400, "Bad request"))
        response = self.get_response(request)
        return _with_limit(request, response) if _is_to_count(request, response) else response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        if is_public(view) or not _is_stranger(request, view):
            return None
        limit = unauthenticated.refusal(_group(request), gate.client_address(GateRequest.of(request)))
        return None if limit is None else unauthenticated.too_many(request, limit)


def _is_to_count(request: HttpRequest, response: HttpResponse) -> bool:
    """Whether a request is to be counted here: no other bucket has, and the failure, if any, is not ours."""
    if "X-RateLimit-Limit" in response.headers or response.status_code >= 500:
        return False
    match = request.resolver_match
    view = None if match is None else match.func
    return not is_public(view) and _is_stranger(request, view)


def _with_limit(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response with how its address stands, or a 429 in its place."""
    group, address = _group(request), gate.client_address(GateRequest.of(request))
    limit = unauthenticated.refusal(group, address) or unauthenticated.count(group, address)
    if not limit.allowed:
        return unauthenticated.too_many(request, limit)
    for name, value in limit.headers().items():
        response[name] = value
    return response


def _is_stranger(request: HttpRequest, view: Any) -> bool:
    if _group(request) == unauthenticated.CONSOLE:
        return access_of(request).is_stranger
    secret = getattr(view, "cls", LimitedView).presented_key(request) or ""
    environment = keys.environment_of(secret)
    return environment is None or not recent_keys.is_known(environment, keys.digest(secret))


def _group(request: HttpRequest) -> str:
    is_for_console = request.path.startswith(CONSOLE_PREFIX)
    return unauthenticated.CONSOLE if is_for_console else unauthenticated.API
