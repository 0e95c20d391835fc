"""Map errors to a status, a message and headers; the body is `{"error": "<text>"}` but below `/oauth/`."""

import logging
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils.deprecation import MiddlewareMixin
from redis.exceptions import RedisError
from rest_framework import exceptions as drf
from rest_framework.response import Response

from compliance.core.errors import Busy, ServiceError
from compliance.stores import sql

log = logging.getLogger(__name__)

DATABASE_DOWN = "The database is unavailable; retry with exponential backoff"
BROKER_DOWN = "The cache is unavailable; retry with exponential backoff"
RETRY_SECONDS = 1
OAUTH: Final = "/oauth/"
_OF_DJANGO: Final = (
    (Http404, 404, "Not found"),
    (PermissionDenied, 403, "Forbidden"),
    (RequestDataTooBig, 413, "Request body is too large"),
    (SuspiciousOperation, 400, "Bad request"),
)
_OAUTH_CODES: Final[Mapping[int, str]] = {
    409: "temporarily_unavailable",
    429: "temporarily_unavailable",
    500: "server_error",
    503: "temporarily_unavailable",
}


def describe(detail: Any, field: str = "") -> str:
    """DRF's nested validation detail as one sentence that names the first field at fault."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        path = field if name == "non_field_errors" else f"{field}.{name}".lstrip(".")
        return describe(inner, path)
    if isinstance(detail, list):
        for position, item in enumerate(detail):
            if item:
                nested = isinstance(item, dict | list)
                return describe(item, f"{field}[{position}]" if nested else field)
        return field
    return f"{field}: {detail}" if field else str(detail)


def error_parts(error: BaseException) -> tuple[int, str, dict[str, str]] | None:
    """Status, message and headers for an error that has an answer; None for a defect (a 500)."""
    soon = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, ServiceError):
        if error.status == 401:
            return 401, error.message, {"WWW-Authenticate": 'Bearer realm="api"', **error.headers}
        own = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
        return error.status, error.message, {**(soon if error.status == 503 else {}), **own, **error.headers}
    if isinstance(error, drf.ValidationError):
        return 400, describe(error.detail), {}
    if isinstance(error, drf.APIException):
        challenge = getattr(error, "auth_header", None)
        headers = {"WWW-Authenticate": challenge} if challenge else {}
        # In the words of the interface specification where it has some.
        message = describe(error.detail)
        if isinstance(error, drf.Throttled):
            message = rate_limited(getattr(error, "wait", None))
        return error.status_code, message, {**headers, **getattr(error, "headers", {})}
    if isinstance(error, sql.OUTAGES):
        status, message = (409, Busy.message) if sql.is_of_lock(error) else (503, DATABASE_DOWN)
        return status, message, soon
    if isinstance(error, RedisError):
        return 503, BROKER_DOWN, soon
    return next(((status, text, {}) for kind, status, text in _OF_DJANGO if isinstance(error, kind)), None)


def rate_limited(seconds: int | None) -> str:
    """Return the answer of every 429."""
    return f"Rate limit exceeded; retry in {seconds or RETRY_SECONDS} s"


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler."""
    found = error_parts(error)
    if found is None:
        return None
    status, message, headers = found
    if isinstance(error, drf.UnsupportedMediaType):
        types = [parser.media_type for parser in context["view"].parser_classes]
        message = f"Content-Type must be {' or '.join(types)}"
    if status == 503:
        log.warning("answered 503: %s", sql.error_name(error))
    return Response({"error": message}, status=status, headers=headers)


def error_body(path: str, status: int, message: str) -> dict[str, str]:
    """Return the body of an error at a path, with the OAuth code of its status where clients expect one."""
    if path.startswith(OAUTH):
        return {"error": _OAUTH_CODES.get(status, "invalid_request"), "error_description": message}
    return {"error": message}


def error_response(
    request: HttpRequest, status: int, message: str, headers: dict[str, str] | None = None
) -> HttpResponse:
    """The response to a request that no view of REST framework answers."""
    return JsonResponse(error_body(request.path, status, message), status=status, headers=headers)


def refuse(
    request: HttpRequest, exception: Exception | None = None, *, status: int, message: str
) -> HttpResponse:
    """Answer as one of Django's handlers of errors."""
    return error_response(request, status, message)


bad_request = partial(refuse, status=400, message="Bad request")
forbidden = partial(refuse, status=403, message="Forbidden")
not_found = partial(refuse, status=404, message="Not found")


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer a failure outside a view: a dead database under a middleware is a 503."""
    error = sys.exc_info()[1]
    found = error_parts(error) if error is not None else None
    return error_response(request, *(found or (500, "Internal server error", {})))


class EnvelopeMiddleware(MiddlewareMixin):
    """Turns an exception that has an answer into the error envelope; the rest is a logged 500."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        found, is_console = error_parts(error), request.path.startswith("/admin/")
        if found is None:
            if settings.DEBUG or is_console:
                return None
            log.error("unexpected error on %s", request.path, exc_info=error)
            found = 500, "Internal server error", {}
        return None if is_console and found[0] in (403, 404) else error_response(request, *found)
