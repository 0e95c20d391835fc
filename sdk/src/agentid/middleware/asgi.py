"""Protects an ASGI application."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from agentid.middleware.gate import Decision, Gate, GateAnswer, Inbound, is_identity

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
POLICY_VIOLATION = 1008  # RFC 6455 §7.4.1
PLAIN = "/:@!$&'()*+,;="  # what a path may hold unescaped, RFC 3986 §3.3


class AsgiGate:
    """Lets requests and WebSockets through that the service allows; `scope["agent"]` says who asks."""

    def __init__(self, app: App, gate: Gate) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            try:
                await self._app(scope, receive, send)
            finally:
                await self._gate.aclose()  # the lifespan ends with the server
            return
        if scope["type"] not in ("http", "websocket"):
            raise ValueError(f"no decision is possible on {scope['type']}")
        inbound = inbound_of(scope)
        scope = {**scope, "headers": [pair for pair in scope["headers"] if not is_identity(_text(pair[0]))]}
        scope["agent"] = None
        # Some frameworks route on the path as it was sent, where an escaped slash is no slash.
        is_plain = inbound.target.partition("?")[0] == quote(inbound.path, safe=PLAIN)
        if not (is_plain and self._gate.is_open(inbound.path)):
            decision, receive = await self.decide(inbound, receive)
            if isinstance(decision, GateAnswer):
                await answer(decision, scope, send)
                return
            scope["agent"] = decision
        await self._app(scope, receive, send)

    async def decide(self, inbound: Inbound, receive: Receive) -> tuple[Decision, Receive]:
        """The decision, and where the application receives the request from."""
        return await self._gate.adecide(inbound), receive


def inbound_of(scope: Scope) -> Inbound:
    headers = [(_text(name).lower(), _text(value)) for name, value in scope["headers"]]
    raw_path, query = scope.get("raw_path"), scope.get("query_string", b"")
    target = _text(raw_path) if raw_path is not None else quote(scope["path"])
    return Inbound(
        method=scope.get("method", "GET"),
        scheme=scope.get("scheme", "http").replace("ws", "http"),
        host=dict(headers).get("host", ""),
        path=scope["path"],
        target=f"{target}?{_text(query)}" if query else target,
        headers=headers,
    )


async def answer(found: GateAnswer, scope: Scope, send: Send) -> None:
    if scope["type"] == "websocket":
        reason = found.content.get("error", "")
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": reason})
        return
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in found.all_headers()]
    await send({"type": "http.response.start", "status": found.status, "headers": headers})
    await send({"type": "http.response.body", "body": found.body})


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")
