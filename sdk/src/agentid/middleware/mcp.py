"""Protects an MCP server over HTTP: the action that is asked about follows from the tool that is called."""

from collections.abc import Mapping

from agentid.errors import NotValid
from agentid.jose import claim, read_object
from agentid.middleware.asgi import App, AsgiGate, Message, Receive
from agentid.middleware.gate import Decision, Gate, GateAnswer, Inbound

MAX_BODY = 4 * 1024 * 1024  # bytes


class McpGate(AsgiGate):
    """The `streamable_http_app()` of an MCP server behind the gateway's decision.

    `tools` names the action that each tool needs; a tool it does not name is refused. Without it, all
    requests need the gate's own action. The request is read whole, at most 4 MiB of it.
    """

    def __init__(self, app: App, gate: Gate, *, tools: Mapping[str, str] | None = None) -> None:
        super().__init__(app, gate)
        self._tools = tools
        if gate.scopes:
            gate.scopes.update((tools or {}).values())

    async def decide(self, inbound: Inbound, receive: Receive) -> tuple[Decision, Receive]:
        if self._tools is None or inbound.method != "POST":
            return await super().decide(inbound, receive)
        body = await _whole(receive)
        if body is None:
            return GateAnswer(413, {"error": "Request body is too large"}), receive
        try:
            tool = called_tool(body)
        except NotValid:
            return GateAnswer(400, {"error": "Request body is not one JSON-RPC message"}), receive
        if tool is not None and tool not in self._tools:
            # The service decides whether the caller is known; what it calls is refused either way.
            decision = await self._gate.adecide(inbound)
            known = isinstance(decision, GateAnswer)
            return decision if known else GateAnswer(403, {"error": "Scope violation"}), receive
        action = self._tools[tool] if tool is not None else None
        return await self._gate.adecide(inbound, action=action), _replayed(body, receive)


def called_tool(body: bytes) -> str | None:
    """The name of the tool in a `tools/call`, None for other messages.

    Raises: NotValid for what two parsers could read differently, and a call without a tool.
    """
    message = read_object(body)
    if message.get("method") != "tools/call":
        return None
    return claim(claim(message, "params", dict), "name", str)


async def _whole(receive: Receive) -> bytes | None:
    """The request's body, or None if it is too large."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return body
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MAX_BODY:
            return None
    return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Receives the body again, in one piece, and then what comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
