"""Protects a Django project: `request.agent` says who asks.

Settings: `AGENTID_GATE`, a `Gate`. Put the middleware first, so that no other sees the client's headers.
"""

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from agentid.middleware.gate import Decision, Gate, GateAnswer, Inbound, is_identity
from agentid.middleware.wsgi import HTTP, headers_of

Answer = HttpResponseBase | Awaitable[HttpResponseBase]


@sync_and_async_middleware
def agent_gate(get_response: Callable[[HttpRequest], Answer]) -> Callable[[HttpRequest], Answer]:
    """Let requests through that the service allows."""
    gate: Gate = settings.AGENTID_GATE  # type: ignore[misc]  # the project's

    async def awaited(request: HttpRequest) -> HttpResponseBase:
        inbound = _enter(request)
        refused = None if gate.is_open(inbound.path) else _settle(request, await gate.adecide(inbound))
        return refused or await get_response(request)  # type: ignore[misc]

    def called(request: HttpRequest) -> Answer:
        inbound = _enter(request)
        refused = None if gate.is_open(inbound.path) else _settle(request, gate.decide(inbound))
        return refused or get_response(request)

    return awaited if iscoroutinefunction(get_response) else called


def _enter(request: HttpRequest) -> Inbound:
    """The request as it came; what could pass for the service's headers is taken out of it."""
    # Django has decoded the path, where WSGI has not.
    query, target = request.META.get("QUERY_STRING"), quote(request.path)
    inbound = Inbound(
        method=request.method or "GET",
        scheme=request.scheme or "http",
        host=request.META.get("HTTP_HOST") or request.META.get("SERVER_NAME", ""),
        path=request.path,
        target=f"{target}?{query}" if query else target,
        headers=headers_of(request.META),
    )
    for name in [name for name in request.META if name.startswith(HTTP)]:
        if is_identity(name.removeprefix(HTTP)):
            del request.META[name]
    request.__dict__.pop("headers", None)  # cached of META
    request.agent = None  # type: ignore[attr-defined]
    return inbound


def _settle(request: HttpRequest, decision: Decision) -> HttpResponse | None:
    """Note who asks, or return the answer in place of the application's."""
    if not isinstance(decision, GateAnswer):
        request.agent = decision  # type: ignore[attr-defined]
        return None
    response = HttpResponse(decision.body, status=decision.status, content_type="application/json")
    for name, value in decision.headers:
        response[name] = f"{response[name]}, {value}" if name in response else value
    return response
