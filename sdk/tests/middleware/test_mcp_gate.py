"""An MCP server over HTTP behind the gate, asked by the official client."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer

from agentid.middleware import Gate
from agentid.middleware.mcp import MAX_BODY, McpGate, called_tool
from events.models import BehaviorEvent
from tests.middleware.conftest import Guarded, over_http
from tests.served import Service

TOOLS = {"look": "read", "change": "write"}
CALL = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "look"}}'


@contextmanager
def protected(gate: Gate) -> Iterator[str]:
    """A server with three tools, one of which the gate knows nothing about."""
    server: MCPServer[Any] = MCPServer("orders")
    for name in (*TOOLS, "forgotten"):
        server.add_tool(lambda: "done", name=name, description=name)
    with over_http(McpGate(server.streamable_http_app(), gate, tools=TOOLS)) as address:
        yield f"{address}/mcp"


def play(url: str, headers: dict[str, str], calls: Callable[[Client], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await calls(client)

    return asyncio.run(run())


@pytest.fixture(scope="module")
def url(running_service: Service, guarded_by_all: Guarded) -> Iterator[str]:
    with protected(Gate(running_service.address, guarded_by_all.gateway_key, action="read")) as found:
        yield found


def post(url: str, serial: str, body: str) -> httpx.Response:
    headers = {
        "X-Service-Cert-Serial": serial,
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    return httpx.post(url, content=body, headers=headers)


def test_permitted_tool_answers(url: str, guarded: Guarded) -> None:
    async def calls(client: Client) -> tuple[int, Any]:
        tools = await client.list_tools()
        return len(tools.tools), await client.call_tool("look", {})

    count, found = play(url, {"X-Service-Cert-Serial": guarded.serial}, calls)

    assert count == 3
    assert not found.is_error
    assert found.content[0].text == "done"


def test_tool_out_of_scope_is_refused_and_on_record(service: Service, own: Guarded) -> None:
    with protected(Gate(service.address, own.gateway_key, action="read")) as url:
        found = post(url, own.serial, CALL.replace("look", "change"))

    assert (found.status_code, found.json()) == (403, {"error": "Scope violation"})
    (event,) = BehaviorEvent.objects.filter(agent_id=own.agent.id)
    assert event.action_type == "unauthorized_access_attempt"


def test_tool_that_no_action_is_named_for_is_refused(url: str, guarded: Guarded) -> None:
    found = post(url, guarded.serial, CALL.replace("look", "forgotten"))

    assert found.status_code == 403


def test_stranger_learns_nothing(service: Service, url: str) -> None:
    for body in (CALL, CALL.replace("look", "forgotten"), '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'):
        assert post(url, "", body).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        f"[{CALL}]",
        "",
        "nonsense",
        "[" * 100_000,
        CALL.replace('"look"', '"look", "name": "change"'),
        CALL.replace('"look"', "7"),
        CALL.replace('{"name": "look"}', "null"),
        "\x00",
    ],
)
def test_what_two_parsers_could_read_differently_is_400(url: str, guarded: Guarded, body: str) -> None:
    assert post(url, guarded.serial, body).status_code == 400


def test_too_large_a_body_is_413(url: str, guarded: Guarded) -> None:
    assert post(url, guarded.serial, " " * (MAX_BODY + 1)).status_code == 413


def test_called_tool_is_read() -> None:
    assert called_tool(CALL.encode()) == "look"
    assert called_tool(b'{"method": "tools/list", "params": {"name": "look"}}') is None
