"""The ids of a request and its count, around everything that Django does for it."""

import re
import time
from collections.abc import Callable
from functools import cache

from django.http import HttpRequest, HttpResponse

from compliance.observing import correlation, logs, request_counts, tracing
from compliance.observing.correlation import REQUEST_ID, Correlation

_PARAMETER = re.compile(r"\(\?P<\w+>[^()]*\)|<[^<>]*>")
HANDED_ON = "service.correlation"
"""The name in a WSGI environment under which our own server hands on the ids of a request."""


class CorrelationMiddleware:
    """Gives a request its ids, unless the server has, and counts its answer by route and status."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get(HANDED_ON)
        ids = given if isinstance(given, Correlation) else _begun(request)
        with correlation.use(ids):
            logs.unbind()
            try:
                response = self.get_response(request)
            finally:
                logs.unbind()
        if ids is not given:
            # Our own server answers with it by itself.
            response[REQUEST_ID] = ids.request_id
        _note(request, response.status_code, ids)
        return response


def route_of(request: HttpRequest) -> str:
    """The pattern of the view that answered, with `{}` for each parameter as `Endpoint.route` has it.

    It has no text of the client; without a view it is `-`.
    """
    match = request.resolver_match
    if match is None or not isinstance(match.route, str):
        return request_counts.UNROUTED
    return _route(match.route)


@cache
def _route(pattern: str) -> str:
    """The label of a view's pattern, of which there are as many as the service has views."""
    return "/" + _PARAMETER.sub("{}", pattern.strip("^/$"))


def _note(request: HttpRequest, status: int, ids: Correlation) -> None:
    method, route = request_counts.method_label(request.method or ""), route_of(request)
    seconds = time.monotonic() - ids.began
    request_counts.note_now(method=method, route=route, status=status, seconds=seconds)
    tags = {"http_request_method": method, "http_route": route, "http_response_status_code": status}
    failed = status >= 500
    tracing.record(ids, f"{method} {route}", kind="SERVER", seconds=seconds, failed=failed, **tags)


def _begun(request: HttpRequest) -> Correlation:
    sent = [
        (name, value)
        for name, value in (
            ("x-request-id", request.META.get("HTTP_X_REQUEST_ID")),
            ("traceparent", request.META.get("HTTP_TRACEPARENT")),
        )
        if isinstance(value, str)
    ]
    return correlation.begin(sent, began=time.monotonic())
