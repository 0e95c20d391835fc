"""Map errors to a status, a message and headers; the body is `{"error": "<text>"}` but below `/oauth/`."""

import logging
import sys
from collections.abc import Mapping
from typing import Any, Final

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from redis.exceptions import RedisError
from rest_framework import exceptions as drf
from rest_framework.response import Response

from compliance.core.errors import ServiceError
from compliance.stores import sql

log = logging.getLogger(__name__)

DATABASE_DOWN = "The database is unavailable; retry with exponential backoff"
BROKER_DOWN = "The cache is unavailable; retry with exponential backoff"
RETRY_SECONDS = 1
OAUTH: Final = "/oauth/"
_OAUTH_CODES: Final[Mapping[int, str]] = {
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
    if isinstance(error, ServiceError):
        return error.status, error.message, _service_headers(error)
    if isinstance(error, drf.ValidationError):
        return 400, describe(error.detail), {}
    if isinstance(error, drf.APIException):
        return _framework_answer(error)
    if isinstance(error, Http404):
        return 404, "Not found", {}
    if isinstance(error, PermissionDenied):
        return 403, "Forbidden", {}
    if isinstance(error, RequestDataTooBig):
        return 413, "Request body is too large", {}
    if isinstance(error, SuspiciousOperation):
        return 400, "Bad request", {}
    if isinstance(error, sql.outages()):
        return 503, DATABASE_DOWN, {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, RedisError):
        return 503, BROKER_DOWN, {"Retry-After": str(RETRY_SECONDS)}
    return None


def rate_limited(seconds: int | None) -> str:
    """What every 429 says."""
    return f"Rate limit exceeded; retry in {seconds or RETRY_SECONDS} s"


def _service_headers(error: ServiceError) -> dict[str, str]:
    if error.status == 401:
        return {"WWW-Authenticate": 'Bearer realm="api"', **error.headers}
    retry = error.retry_after or (RETRY_SECONDS if error.status == 503 else None)
    return {**({"Retry-After": str(retry)} if retry else {}), **error.headers}


def _framework_answer(error: drf.APIException) -> tuple[int, str, dict[str, str]]:
    headers: dict[str, str] = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    headers.update(getattr(error, "headers", {}))
    return error.status_code, _framework_message(error), headers


def _framework_message(error: drf.APIException) -> str:
    """What the framework refuses, in the words of the interface specification where it has some."""
    if isinstance(error, drf.Throttled):
        return rate_limited(getattr(error, "wait", None))
    if isinstance(error, drf.UnsupportedMediaType):
        return "Content-Type must be application/json"
    return describe(error.detail)


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler."""
    found = error_parts(error)
    if found is None:
        return None
    status, message, headers = found
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


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_response(request, 400, "Bad request")


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_response(request, 403, "Forbidden")


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return error_response(request, 404, "Not found")


def server_error(request: HttpRequest) -> HttpResponse:
    """What failed outside a view may still have an answer: a dead database under a middleware is a 503."""
    error = sys.exc_info()[1]
    found = error_parts(error) if error is not None else None
    return error_response(request, *(found or (500, "Internal server error", {})))
