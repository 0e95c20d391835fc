"""The environment of the console's requests, its security headers, error pages and sign-in limit."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.loader import render_to_string
from django.utils.cache import add_never_cache_headers

from compliance.api import gate
from compliance.api.exceptions import error_response
from compliance.api.gate import GateRequest
from compliance.api.rate_limits import hit
from compliance.console.addresses import (
    CONSOLE_PREFIX,
    SIGN_IN,
    URLCONF,
    environment_of_path,
    prefix_of,
    within,
)

# Unfold's Alpine.js compiles expressions ('unsafe-eval') and sets inline styles. There are no inline scripts.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"
PASSWORD_PAGES = (f"/{SIGN_IN}", "/password_change/")
TITLES = {
    403: "Not yours to see",
    404: "Nothing here",
    405: "Not opened by its address",
    409: "Busy for the moment",
    429: "Too many attempts",
    503: "Unavailable for the moment",
}
EXPLANATIONS = {
    403: "Your role does not open this page. An operator can change your membership.",
    404: "The page or row does not exist in this environment, or belongs to another tenant.",
    405: "This page is the answer to a button. Go back and press the button again.",
    500: "The service failed to make this page. The failure has been logged.",
}


@dataclass(frozen=True)
class ConsoleMiddleware:
    """Routes to the environment that the path names, adds headers, and turns error envelopes into pages.

    `request.path` stays whole; `request.path_info` loses the environment's prefix, so that both environments
    share one set of routes. Outside the console it removes the request's cookies, which the API never reads.
    """

    get_response: Callable[[HttpRequest], HttpResponse]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # UTF-8, whatever charset a client names: others decode to lone surrogates, or fail.
        if "charset" in (request.content_params or {}):
            request.encoding = "utf-8"
        if not request.path.startswith(CONSOLE_PREFIX):
            request.COOKIES = {}
            return self.get_response(request)
        environment = environment_of_path(request.path)
        if environment is None:
            response = self.answer(request)
        else:
            request.path_info = request.path[len(prefix_of(environment)) - 1 :]
            request.urlconf = URLCONF
            with within(environment):
                response = self.answer(request)
        if "Cache-Control" not in response.headers:
            add_never_cache_headers(response)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        response.headers.setdefault("Permissions-Policy", PERMISSIONS_POLICY)
        return response

    def answer(self, request: HttpRequest) -> HttpResponse:
        response = too_many_attempts(request) or self.get_response(request)
        is_envelope = response.headers.get("Content-Type") == "application/json"
        status, environment = response.status_code, environment_of_path(request.path)
        if status < 400 or not (is_envelope or isinstance(response, HttpResponseNotAllowed)):
            return response
        # A page that needs neither database nor session: one of them may have failed.
        context = {
            "status": status,
            "title": TITLES.get(status, "Something went wrong"),
            "home": prefix_of(environment) if environment else CONSOLE_PREFIX,
            "explanation": EXPLANATIONS.get(status) or json.loads(response.content).get("error", ""),
        }
        page = HttpResponse(render_to_string("admin/console/error.html", context), status=status)
        for name, value in response.headers.items():
            if not name.startswith("Content-"):
                page.headers[name] = value
        return page


def too_many_attempts(request: HttpRequest) -> HttpResponse | None:
    """Return a 429 if the client's address exceeds the limit of sign-in attempts, else None.

    Where one changes one's own password a stolen session could guess it too.
    """
    if request.method != "POST" or not request.path_info.startswith(PASSWORD_PAGES):
        return None
    limit = hit("sign_in", gate.client_address(GateRequest.of(request)))
    if limit.allowed:
        return None
    message = f"Too many attempts to sign in; try again in {limit.retry_after} s."
    return error_response(request, 429, message, {"Retry-After": str(limit.retry_after)})
