"""The ids of a request and its count, around everything that Django does for it."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from compliance.observing import correlation, metrics
from compliance.observing.correlation import REQUEST_ID, Correlation

_PARAMETER = re.compile(r"\(\?P<\w+>[^()]*\)|<[^<>]*>")
HANDED_ON = "service.correlation"
"""The name in a WSGI environment under which our own server hands on the ids of a request."""


@dataclass(frozen=True)
class CorrelationMiddleware:
    """Gives a request its ids, unless the server has, and counts its answer by route and status."""

    get_response: Callable[[HttpRequest], HttpResponse]

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.META.get(HANDED_ON)
        if isinstance(given, Correlation):
            ids = given
        else:
            sent = {"x-request-id": "HTTP_X_REQUEST_ID", "traceparent": "HTTP_TRACEPARENT"}
            headers = [(name, request.META[key]) for name, key in sent.items() if key in request.META]
            ids = correlation.begin(headers, began=time.monotonic())
        with correlation.use(ids):
            response = self.get_response(request)
        if ids is not given:
            # Our own server answers with it by itself.
            response[REQUEST_ID] = ids.request_id
        metrics.note_answer(
            method=request.method or "",
            route=route_of(request),
            status=response.status_code,
            seconds=time.monotonic() - ids.began,
        )
        return response


def route_of(request: HttpRequest) -> str:
    """The pattern of the view that answered, with `{}` for each parameter as `Endpoint.route` has it.

    It has no text of the client; without a view it is `-`.
    """
    match = request.resolver_match
    if match is None or not isinstance(match.route, str):
        return metrics.UNROUTED
    return "/" + _PARAMETER.sub("{}", match.route.strip("^/$"))
