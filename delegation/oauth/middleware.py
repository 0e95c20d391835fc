"""Headers and error bodies of every answer under `/oauth/`: never cached, errors as in RFC 6749 §5.2."""

import json
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from compliance.api.gate import GateRequest
from compliance.api.rest.renderers import dumps
from delegation.oauth import errors

PREFIX = "/oauth/"


class OAuthMiddleware:
    """Rewrite errors made outside the views (rate limits, unknown paths, database down) as RFC 6749's."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not request.path.startswith(PREFIX):
            return response
        if response.status_code >= 400:
            _reform(request, response)
        for name, value in errors.NO_STORE.items():
            response[name] = value
        return response


def _reform(request: HttpRequest, response: HttpResponse) -> None:
    try:
        found = json.loads(response.content)
    except ValueError:
        return
    if not isinstance(found, dict) or not isinstance(found.get("error"), str) or "error_description" in found:
        return
    response.status_code, content = errors.body_of_status(response.status_code, found["error"])
    response.content = dumps(content)
    response["Content-Length"] = str(len(response.content))
    if response.status_code == 401:
        response["WWW-Authenticate"] = errors.challenge(GateRequest.of(request))
