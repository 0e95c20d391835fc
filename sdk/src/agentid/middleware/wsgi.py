"""Protects a WSGI application."""

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from agentid.middleware.gate import Gate, GateAnswer, Inbound, is_identity

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]
HTTP = "HTTP_"


class WsgiGate:
    """Lets requests through that the service allows; `environ["agentid.agent"]` says who asks."""

    def __init__(self, app: App, gate: Gate) -> None:
        self._app, self._gate = app, gate

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        inbound = inbound_of(environ)
        # Without headers of the client that could pass for the service's.
        environ = {
            name: value
            for name, value in environ.items()
            if not (name.startswith(HTTP) and is_identity(name.removeprefix(HTTP)))
        }
        environ["agentid.agent"] = None
        if not self._gate.is_open(inbound.path):
            decision = self._gate.decide(inbound)
            if isinstance(decision, GateAnswer):
                status = f"{decision.status} {HTTPStatus(decision.status).phrase}"
                start_response(status, decision.all_headers())
                return [decision.body]
            environ["agentid.agent"] = decision
        return self._app(environ, start_response)


def inbound_of(environ: Environ) -> Inbound:
    """The request; the target is the path the application sees, escaped again."""
    raw_path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "") or "/"
    try:
        octets = raw_path.encode("latin-1")  # PEP 3333
    except UnicodeEncodeError:  # from a server that has decoded it
        octets = raw_path.encode("utf-8", "replace")
    target, query = quote(octets), environ.get("QUERY_STRING")
    return Inbound(
        method=environ["REQUEST_METHOD"],
        scheme=environ.get("wsgi.url_scheme", "http"),
        host=environ.get("HTTP_HOST") or environ.get("SERVER_NAME", ""),
        path=octets.decode("utf-8", "replace"),
        target=f"{target}?{query}" if query else target,
        headers=headers_of(environ),
    )


def headers_of(environ: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The request's headers, of which WSGI gives each once."""
    return [
        (name.removeprefix(HTTP).replace("_", "-").lower(), value)
        for name, value in environ.items()
        if name.startswith(HTTP)
    ]
