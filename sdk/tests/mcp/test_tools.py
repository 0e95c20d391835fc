"""The tools over real standard input and output, by the official client."""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import agentid
from agentid import Client as ServiceClient
from agentid.keys import DpopKey
from agents.tests.factories import make_agent
from certificates import services as certificates
from certificates.models import Certificate
from certificates.public import messages
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from events.models import BehaviorEvent
from gateway.access.tests.factories import make_policy
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import decide
from gateway.tests.factories import make_permitted_agent
from tenancy.tests.factories import ACTOR, make_key, make_tenant
from tests.conftest import Reported
from tests.served import Service

Play = Callable[[Client], Coroutine[Any, Any, Any]]


@pytest.fixture(scope="module")
def reported(served: Service, django_db_blocker: Any) -> Reported:
    """One agent for all tests, as they share a server."""
    with django_db_blocker.unblock(), environments.use(Environment.LIVE):
        tenant = make_tenant()
        make_policy(tenant, always_ask=["pay"])
        return Reported(make_permitted_agent(tenant), make_key(tenant))


@pytest.fixture(scope="module")
def environment(served: Service, reported: Reported) -> dict[str, str]:
    return {
        "PYTHONPATH": str(Path(agentid.__file__).parents[1]),
        "AGENTID_BASE_URL": served.address,
        "AGENTID_API_KEY": reported.api_key,
        "AGENTID_AGENT_ID": str(reported.agent.id),
    }


def served_over_stdio(environ: dict[str, str]) -> Client:
    """A client, to be entered, of a server process of its own."""
    given = {name: value for name, value in environ.items() if value}
    return Client(
        stdio_client(StdioServerParameters(command=sys.executable, args=["-m", "agentid.mcp"], env=given))
    )


@pytest.fixture(scope="module")
def play_on_shared(environment: dict[str, str]) -> Iterator[Callable[[Play], Any]]:
    """Run calls against one server process for all tests."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(served_over_stdio(environment)) as client,
    ):
        yield lambda calls: portal.call(calls, client)


@pytest.fixture
def play(
    service: Service, environment: dict[str, str], play_on_shared: Callable[[Play], Any]
) -> Callable[..., Any]:
    """Run calls against the shared server; where settings are given, against one that has these."""

    def run(calls: Play, **environ: str) -> Any:
        if not environ:
            return play_on_shared(calls)

        async def play_it() -> Any:
            async with served_over_stdio(environment | environ) as client:
                return await calls(client)

        return asyncio.run(play_it())

    return run


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
        "decide",
        "wait_for_approval",
        "report_event",
        "obtain_token",
    }
    assert all(tool.description and tool.output_schema for tool in tools.values())
    assert "data_access" in str(tools["report_event"].input_schema)


def test_agent_obtains_a_token_that_another_verifies(play: Callable[..., Any], reported: Reported) -> None:
    chain = [{"sub": "anna", "type": "human"}, {"sub": "reader", "type": "agent"}]

    async def calls(client: Client) -> tuple[Any, Any]:
        issued = await client.call_tool("obtain_token", {"chain": chain, "audience": "orders"})
        token = issued.structured_content["token"]
        given = {"token": token, "audience": "orders"}
        elsewhere = await client.call_tool("verify_delegation", given | {"audience": "stock"})
        assert elsewhere.structured_content["reason"] == "invalid_audience"
        return issued, await client.call_tool("verify_delegation", given)

    issued, verified = play(calls)

    assert not issued.is_error, issued.content
    assert issued.structured_content["principal"] == "reader"
    assert verified.structured_content["valid"] is True
    assert verified.structured_content["audience"] == "orders"
    assert verified.structured_content["agent_id"] == str(reported.agent.id)


def test_token_is_bound_to_the_agents_key(
    play: Callable[..., Any], service: Service, reported: Reported, tmp_path: Path
) -> None:
    chain = [{"sub": "anna", "type": "human"}, {"sub": "reader", "type": "agent"}]
    longer = [*chain, {"sub": "helper", "type": "sub_agent"}]

    async def calls(client: Client) -> tuple[Any, Any]:
        first = await client.call_tool("obtain_token", {"chain": chain})
        assert not first.is_error, first.content
        parent = first.structured_content["token"]
        return first, await client.call_tool("obtain_token", {"chain": longer, "parent_token": parent})

    first, second = play(calls, AGENTID_DPOP_KEY=str(tmp_path / "key.pem"))

    thumbprint = DpopKey.load(tmp_path / "key.pem").thumbprint
    assert first.structured_content["bound_to"] == thumbprint
    assert not second.is_error, second.content
    assert second.structured_content["bound_to"] == thumbprint


def test_subject_token_is_exchanged_under_the_agents_key(
    play: Callable[..., Any], service: Service, reported: Reported, tmp_path: Path
) -> None:
    with environments.use(Environment.LIVE):
        first = make_agent(reported.agent.tenant, name="first")
    with ServiceClient(service.address, reported.api_key) as caller:
        human = [{"sub": "anna", "type": "human"}]
        handed = caller.obtain_token(str(first.id), chain=human, scope="read").token

    async def calls(client: Client) -> tuple[Any, Any]:
        given = {"subject_token": handed, "subject_token_type": "access_token", "audience": "orders"}
        return (
            await client.call_tool("obtain_token", given),
            await client.call_tool("obtain_token", given | {"chain": []}),
        )

    found, both = play(calls, AGENTID_DPOP_KEY=str(tmp_path / "key.pem"))

    assert not found.is_error, found.content
    assert found.structured_content["principal"] == reported.agent.did
    assert found.structured_content["scope"] == "read"
    assert found.structured_content["audience"] == "orders"
    assert found.structured_content["bound_to"] == DpopKey.load(tmp_path / "key.pem").thumbprint
    assert both.is_error
    assert "either subject_token or chain" in both.content[0].text


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


def test_reported_event_is_stored(play: Callable[..., Any], reported: Reported) -> None:
    async def calls(client: Client) -> Any:
        given = {"action_type": "data_access", "details": {"resource": "orders"}, "session_id": "s1"}
        return await client.call_tool("report_event", given)

    found = play(calls)

    stored = BehaviorEvent.objects.get(agent_id=reported.agent.id)
    assert found.structured_content["id"] == str(stored.id)
    assert found.structured_content["risk_band"] == "low"
    assert (stored.details, stored.session_id) == ({"resource": "orders"}, "s1")


def test_act_is_asked_about_and_done_once_it_is_approved(
    play: Callable[..., Any], service: Service, reported: Reported, settings: Any
) -> None:
    settings.TOKEN_ISSUER = service.address  # the approval is decided here, and used by the service
    pay = {"action": "pay", "resource": {"type": "invoice", "id": "7"}, "details": {"amount": 900}}

    async def ask(client: Client) -> list[Any]:
        read = await client.call_tool("decide", pay | {"action": "read"})
        other = await client.call_tool("decide", pay | {"action": "delete"})
        asked = await client.call_tool("decide", pay)
        given = {"approval_id": asked.structured_content["approval"]["id"], "seconds": 0}
        return [read, other, asked, await client.call_tool("wait_for_approval", given)]

    read, other, asked, waiting = play(ask)
    approval_id = asked.structured_content["approval"]["id"]
    with environments.use(Environment.LIVE):
        decide(Approval.objects.get(id=approval_id))

    async def act(client: Client) -> list[Any]:
        approved = await client.call_tool("wait_for_approval", {"approval_id": approval_id})
        used = pay | {"approval": approved.structured_content["receipt"]}
        return [approved, *[await client.call_tool("decide", used) for _ in range(2)]]

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
        ("decide", {"action": "", "resource": {"type": "invoice", "id": "7"}}, "400: "),
        ("decide", {"action": "read", "resource": {"type": "invoice"}}, "resource"),
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
    ("environ", "error"),
    [
        ({"AGENTID_API_KEY": ""}, "401: "),
        ({"AGENTID_AGENT_ID": ""}, "AGENTID_AGENT_ID is not set"),
        ({"AGENTID_API_KEY": "service_live_wrong"}, "401: "),
        ({"AGENTID_BASE_URL": "http://127.0.0.1:9"}, "ConnectError"),
    ],
)
def test_misconfiguration_is_said_without_secrets(
    play: Callable[..., Any], reported: Reported, environ: dict[str, str], error: str
) -> None:
    async def calls(client: Client) -> Any:
        return await client.call_tool("report_event", {"action_type": "api_call"})

    found = play(calls, **environ)

    assert found.is_error
    assert error in found.content[0].text
    assert reported.api_key not in found.content[0].text
    assert "service_live_wrong" not in found.content[0].text


def test_revoked_agent_is_said_to_be(play: Callable[..., Any], reported: Reported) -> None:
    found = Certificate.objects.get(agent=make_certified_agent(reported.agent.tenant))
    certificates.revoke(
        tenant_id=found.tenant_id,
        certificate_id=found.id,
        reason="keyCompromise",
        actor=ACTOR,
        now=now(),
    )

    async def calls(client: Client) -> Any:
        return await client.call_tool("verify_agent", {"serial_number": str(found.serial_number)})

    assert play(calls).structured_content["status"] == "revoked"
