"""The tools over real standard input and output, and over HTTP, by the official client."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import agentid
from agentid import AsyncClient, Retries
from agentid.keys import DpopKey
from agentid.mcp.server import make_server
from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.models import Certificate
from certificates.public import messages
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.waiting import eventually
from events.models import BehaviorEvent
from gateway.access.tests.factories import make_policy
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import decide
from gateway.tests.factories import make_permitted_agent
from tenancy.tests.factories import make_key, make_tenant
from tests.conftest import Reported
from tests.served import Service

Play = Callable[[Client], Coroutine[Any, Any, Any]]


@pytest.fixture(scope="module")
def reported(running_service: Service, django_db_blocker: Any) -> Reported:
    """One agent for all tests, as they share a server."""
    with django_db_blocker.unblock(), environments.use(Environment.LIVE):
        tenant = make_tenant()
        make_policy(tenant, always_ask=["pay"])
        return Reported(make_permitted_agent(tenant), make_key(tenant))


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server makes the agent's own key."""
    return tmp_path_factory.mktemp("agent") / "key.pem"


@pytest.fixture(scope="module")
def environment(running_service: Service, reported: Reported, key_file: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": str(Path(agentid.__file__).parents[1]),
        "AGENTID_BASE_URL": running_service.address,
        "AGENTID_API_KEY": reported.api_key,
        "AGENTID_AGENT_ID": str(reported.agent.id),
        "AGENTID_DPOP_KEY": str(key_file),
    }


@pytest.fixture(scope="module")
def play_on_shared(environment: dict[str, str]) -> Iterator[Callable[[Play], Any]]:
    """Run calls against one server process for all tests, over standard input and output."""
    command = StdioServerParameters(command=sys.executable, args=["-m", "agentid.mcp"], env=environment)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(stdio_client(command))) as client,
    ):
        yield lambda calls: portal.call(calls, client)


@pytest.fixture
def play(service: Service, play_on_shared: Callable[[Play], Any]) -> Callable[..., Any]:
    """Run calls against the shared server process, in a test over the running service."""
    return play_on_shared


def play_with(calls: Play, base_url: str, api_key: str | None, agent_id: str | None) -> Any:
    """Run calls against a server in this process, which has other settings."""

    async def run() -> Any:
        async with (
            AsyncClient(base_url, api_key, retries=Retries(tries=1)) as asking,
            Client(make_server(asking, agent_id=agent_id)) as client,
        ):
            return await calls(client)

    return asyncio.run(run())


def serial_of(reported: Reported) -> str:
    return str(Certificate.objects.get(agent_id=reported.agent.id).serial_number)


def test_tools_are_typed(play: Callable[..., Any]) -> None:
    async def calls(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in play(calls)}

    assert set(tools) == {
        "verify_agent",
        "verify_delegation",
        "verify_message",
        "check_action",
        "wait_for_approval",
        "report_action",
        "my_risk",
        "obtain_token",
    }
    assert all(tool.description and tool.output_schema for tool in tools.values())
    assert "data_access" in str(tools["report_action"].input_schema)


def test_agent_obtains_tokens_that_are_bound_to_its_key_and_verified(
    play: Callable[..., Any], reported: Reported, key_file: Path
) -> None:
    chain = [{"sub": "anna", "type": "human"}, {"sub": "reader", "type": "agent"}]
    longer = [*chain, {"sub": "helper", "type": "sub_agent"}]

    async def calls(client: Client) -> list[Any]:
        issued = await client.call_tool("obtain_token", {"chain": chain, "audience": "orders"})
        token = issued.structured_content["token"]
        return [
            issued,
            await client.call_tool("obtain_token", {"chain": longer, "parent_token": token}),
            await client.call_tool("verify_delegation", {"token": token, "audience": "orders"}),
            await client.call_tool("verify_delegation", {"token": token, "audience": "stock"}),
        ]

    issued, handed_on, verified, elsewhere = (each.structured_content for each in play(calls))

    thumbprint = DpopKey.load(key_file).thumbprint
    assert issued["principal"] == "reader"
    assert (issued["bound_to"], handed_on["bound_to"]) == (thumbprint, thumbprint)
    assert (verified["valid"], verified["audience"]) == (True, "orders")
    assert verified["agent_id"] == str(reported.agent.id)
    assert elsewhere["reason"] == "invalid_audience"


def test_agent_and_message_of_it_are_verified(play: Callable[..., Any], reported: Reported) -> None:
    serial = serial_of(reported)
    signed = messages.sign_message(
        certificate=Certificate.objects.get(serial_number=serial), payload={"order": 7}
    )

    async def calls(client: Client) -> tuple[Any, Any, Any]:
        given = {"payload": {"order": 7}, "signature": signed.signature, "certificate_serial": serial}
        return (
            await client.call_tool("verify_agent", {"serial_number": serial}),
            await client.call_tool("verify_message", given),
            await client.call_tool("verify_message", given | {"payload": {"order": 8}}),
        )

    agent, message, forged = play(calls)

    assert agent.structured_content["status"] == "active"
    assert agent.structured_content["agent_id"] == str(reported.agent.id)
    assert message.structured_content["valid"] is True
    assert (forged.structured_content["valid"], forged.structured_content["reason"]) == (
        False,
        "invalid_signature",
    )


def test_checked_action_is_recorded_once_it_is_reported(play: Callable[..., Any], reported: Reported) -> None:
    events = BehaviorEvent.objects.filter(agent_id=reported.agent.id)
    before = events.count()
    act = {"action_type": "data_access", "details": {"resource": "orders"}}

    async def check(client: Client) -> Any:
        asked = {"action": "read", "resource": {"type": "order", "id": "7"}, **act}
        return (await client.call_tool("check_action", asked)).structured_content

    checked = play(check)
    unrecorded = events.count() - before

    async def report(client: Client) -> Any:
        by = {"decision_id": checked["decision_id"], "session_id": "s1"}
        return (await client.call_tool("report_action", act | by)).structured_content

    found = play(report)

    stored = events.get(decision_id=checked["decision_id"])
    assert (checked["decision"], unrecorded) == (True, 0)
    assert (str(stored.id), stored.session_id) == (found["id"], "s1")
    assert (stored.details, found["risk_band"]) == ({"resource": "orders"}, "low")


def test_agent_asks_for_its_own_risk(service: Service, reported: Reported) -> None:
    tenant = reported.agent.tenant
    risky, uncertified = make_certified_agent(tenant), make_agent(tenant, name="uncertified")
    Agent.objects.filter(id=risky.id).update(risk_score=0.5)

    async def calls(client: Client) -> Any:
        return await client.call_tool("my_risk", {})

    found, none = (
        play_with(calls, service.address, reported.api_key, str(each.id)) for each in (risky, uncertified)
    )

    assert found.structured_content == {
        "agent_id": str(risky.id),
        "agent_status": "active",
        "risk_score": 0.5,
        "risk_band": "medium",
    }
    assert none.is_error
    assert "no certificate" in none.content[0].text


@pytest.fixture(scope="module")
def port(environment: dict[str, str]) -> Iterator[int]:
    """The port of a server process of its own, over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    command = [sys.executable, "-m", "agentid", "mcp", "--http", str(number)]
    with subprocess.Popen(command, env={**os.environ, **environment}) as process:
        try:
            assert eventually(lambda: connects("127.0.0.1", number))
            yield number
        finally:
            process.terminate()


def connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


def test_tools_are_the_same_over_http(
    play: Callable[..., Any], port: int, service: Service, reported: Reported
) -> None:
    async def over_http() -> list[Any]:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            asked = {"action": "read", "resource": {"type": "order", "id": "7"}}
            return [
                (await client.list_tools()).tools,
                await client.call_tool("check_action", asked),
                await client.call_tool("report_action", {"action_type": "api_call"}),
                await client.call_tool("my_risk", {}),
            ]

    async def calls(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools, checked, recorded, risk = asyncio.run(over_http())

    assert tools == play(calls)
    assert checked.structured_content["outcome"] == "allow"
    assert BehaviorEvent.objects.get(id=recorded.structured_content["id"]).agent_id == reported.agent.id
    assert risk.structured_content["agent_id"] == str(reported.agent.id)
    assert reported.api_key not in str([checked, recorded, risk])


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ({"Host": "attacker.example"}, 421),
        ({"Host": "127.0.0.1.attacker.example:80"}, 421),
        ({"Origin": "https://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_another_sites_page_cannot_call_over_http(
    service: Service, port: int, header: dict[str, str], status: int
) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "my_risk"}}
    accepts = {"Accept": "application/json, text/event-stream"}

    found = httpx.post(f"http://127.0.0.1:{port}/mcp", json=call, headers=accepts | header)

    assert found.status_code == status


def test_http_is_served_to_this_machine_alone(service: Service, port: int) -> None:
    assert connects("127.0.0.1", port)
    assert not connects("127.0.0.2", port)  # the machine's too, but not the address that is served


def test_act_is_asked_about_and_done_once_it_is_approved(
    play: Callable[..., Any], service: Service, reported: Reported, settings: Any
) -> None:
    settings.TOKEN_ISSUER = service.address  # the approval is decided here, and used by the service
    pay = {"action": "pay", "resource": {"type": "invoice", "id": "7"}, "details": {"amount": 900}}

    async def ask(client: Client) -> list[Any]:
        read = await client.call_tool("check_action", pay | {"action": "read"})
        other = await client.call_tool("check_action", pay | {"action": "delete"})
        asked = await client.call_tool("check_action", pay)
        given = {"approval_id": asked.structured_content["approval"]["id"], "seconds": 0}
        return [read, other, asked, await client.call_tool("wait_for_approval", given)]

    read, other, asked, waiting = play(ask)
    approval_id = asked.structured_content["approval"]["id"]
    with environments.use(Environment.LIVE):
        decide(Approval.objects.get(id=approval_id))

    async def act(client: Client) -> list[Any]:
        approved = await client.call_tool("wait_for_approval", {"approval_id": approval_id})
        used = pay | {"approval": approved.structured_content["receipt"]}
        return [approved, *[await client.call_tool("check_action", used) for _ in range(2)]]

    approved, allowed, again = play(act)

    found = [each.structured_content for each in (read, other, asked, allowed, again)]
    assert [each["outcome"] for each in found] == ["allow", "deny", "ask", "allow", "deny"]
    assert [each["decision"] for each in found] == [True, False, False, True, False]
    assert found[1]["reasons"][0]["name"] == "scope_violation"
    assert found[4]["reasons"][0]["name"] == "approval_already_used"
    standings = [each.structured_content for each in (waiting, approved)]
    assert [each["status"] for each in standings] == ["pending", "approved"]
    assert reported.api_key not in str([read, other, asked, waiting, approved, allowed, again])


@pytest.mark.parametrize(
    ("tool", "given", "error"),
    [
        ("wait_for_approval", {"approval_id": "01a0b2c4-0000-7000-8000-000000000003"}, "404: "),
        ("wait_for_approval", {"approval_id": "../agents"}, "404: "),
        ("wait_for_approval", {"approval_id": "a", "seconds": 301}, "seconds"),
        ("check_action", {"action": "", "resource": {"type": "invoice", "id": "7"}}, "400: "),
        ("check_action", {"action": "read", "resource": {"type": "invoice"}}, "resource"),
    ],
)
def test_what_cannot_be_asked_is_an_error_of_the_tool(
    play: Callable[..., Any], reported: Reported, tool: str, given: dict[str, Any], error: str
) -> None:
    async def calls(client: Client) -> Any:
        return await client.call_tool(tool, given)

    found = play(calls)

    assert found.is_error
    assert error in found.content[0].text
    assert reported.api_key not in found.content[0].text


def test_unknown_agent_is_an_error_of_the_tool(play: Callable[..., Any]) -> None:
    serials = ["00ff", "../agents", "a/b?c=d#e", "\x00", "é", "x" * 10_000]

    async def calls(client: Client) -> list[Any]:
        return [await client.call_tool("verify_agent", {"serial_number": each}) for each in serials]

    for serial, found in zip(serials, play(calls), strict=True):
        assert found.is_error, serial
        assert ": 4" in found.content[0].text, serial


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"api_key": None}, "401: "),
        ({"agent_id": None}, "AGENTID_AGENT_ID is not set"),
        ({"api_key": "service_live_wrong"}, "401: "),
        ({"base_url": "http://127.0.0.1:9"}, "ConnectError"),
    ],
)
def test_misconfiguration_is_said_without_secrets(
    service: Service, reported: Reported, changed: dict[str, Any], error: str
) -> None:
    async def calls(client: Client) -> Any:
        return await client.call_tool("report_action", {"action_type": "api_call"})

    own = {"base_url": service.address, "api_key": reported.api_key, "agent_id": str(reported.agent.id)}
    found = play_with(calls, **own | changed)

    assert found.is_error
    assert error in found.content[0].text
    assert reported.api_key not in found.content[0].text
    assert "service_live_wrong" not in found.content[0].text
