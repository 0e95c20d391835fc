"""The envelope for what fails outside a view: a dead database in a middleware, a malformed request."""

import logging
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from compliance.api.exceptions import error_parts, error_response

log = logging.getLogger(__name__)


class EnvelopeMiddleware:
    """Turns an exception that has an answer into the error envelope; the rest is a logged 500."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        found = error_parts(error)
        if found is None:
            if settings.DEBUG or request.path.startswith("/admin/"):
                return None
            log.error("unexpected error on %s", request.path, exc_info=error)
            return error_response(request, 500, "Internal server error")
        status, message, headers = found
        if request.path.startswith("/admin/") and status in (403, 404):
            return None
        return error_response(request, status, message, headers)
