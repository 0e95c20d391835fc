"""Each shell with the running service's decision."""

import asyncio
from typing import Any

import httpx
import pytest

from agentid import Client
from agentid.keys import DpopKey
from agentid.middleware import Gate
from agentid.middleware.asgi import AsgiGate, Scope
from compliance.core import environments
from compliance.core.environments import Environment
from events.models import BehaviorEvent
from gateway.access.tests.factories import make_policy
from gateway.approvals.models import Approval
from gateway.approvals.tests.factories import decide
from tenancy.tests.factories import make_key
from tests.between import Canned, Fate, between
from tests.middleware.conftest import Ask, Asked, Guarded, MakeGate, asgi_app
from tests.served import Service

FORGED = {"X-Service-Agent-Id": "forged", "X_Service_Agent_Id": "forged", "X-Service-Scope": "all"}
HOST = [(b"host", b"api.example.com")]
AWAY = {"error": "The authorization service does not answer"}


def test_agent_with_the_action_in_scope_passes(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate
) -> None:
    gate = make_gate(service.address, guarded.gateway_key, action="read")

    found = ask(gate, "/orders", {"X-Service-Cert-Serial": guarded.serial, **FORGED})

    assert found.status == 200
    assert found.body["agent"] == {"agent_id": str(guarded.agent.id), "action": "read"}
    assert found.seen == {}


def test_any_path_is_asked_about(service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate) -> None:
    for path in ["/", "/\u00fc/\u65e5\u672c", "/a%2Fb%20c;d=e", "/%ff", "/x?\u00fc=%00"]:
        gate = make_gate(service.address, guarded.gateway_key, action="read")

        assert ask(gate, path, {"X-Service-Cert-Serial": guarded.serial}).status == 200
        assert ask(gate, path, {}).status == 401


def test_only_what_can_be_decided_about_reaches_an_asgi_application(make_gate: MakeGate) -> None:
    reached: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["type"])

    async def play(kind: str) -> None:
        scope = {"type": kind, "path": "/", "headers": []}
        await AsgiGate(app, make_gate("http://127.0.0.1:9", "key"))(scope, None, None)  # type: ignore[arg-type]

    asyncio.run(play("lifespan"))
    with pytest.raises(ValueError, match="webtransport"):
        asyncio.run(play("webtransport"))

    assert reached == ["lifespan"]


def test_action_out_of_scope_is_403_and_on_record(
    service: Service, own: Guarded, ask: Ask, make_gate: MakeGate
) -> None:
    gate = make_gate(service.address, own.gateway_key, action=lambda asked: asked.path.strip("/"))
    headers = {"X-Service-Cert-Serial": own.serial, "X-Service-Action": "read"}

    refused, again = ask(gate, "/write", headers), ask(gate, "/write", headers)

    assert (refused.status, refused.body) == (again.status, again.body) == (403, {"error": "Scope violation"})
    stored = BehaviorEvent.objects.filter(agent_id=own.agent.id)
    assert [event.action_type for event in stored] == ["unauthorized_access_attempt"]
    assert ask(gate, "/read", headers).status == 200


def sent_by(gate: Gate, scope: Scope) -> list[Any]:
    """What the application behind the gate answers to an empty request."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def play() -> None:
        await AsgiGate(asgi_app, gate)(scope, receive, send)
        await gate.aclose()

    asyncio.run(play())
    return sent


@pytest.mark.parametrize(
    ("raw_path", "status"), [(b"/public/info", 200), (b"/public%2Finfo", 401), (b"/public/%69nfo", 401)]
)
def test_excluded_path_is_open_as_it_is_written_alone(
    service: Service, guarded: Guarded, make_gate: MakeGate, raw_path: bytes, status: int
) -> None:
    gate = make_gate(service.address, guarded.gateway_key, action="read", excluded=("/public/info",))
    scope = {"type": "http", "method": "GET", "path": "/public/info", "raw_path": raw_path, "headers": HOST}

    sent = sent_by(gate, scope)

    assert sent[0]["status"] == status


def test_refusal_names_the_approval_whose_receipt_lets_the_request_pass_once(
    service: Service, own: Guarded, ask: Ask, make_gate: MakeGate, settings: Any
) -> None:
    settings.TOKEN_ISSUER = service.address
    gate = make_gate(service.address, own.gateway_key, action="read")
    headers = {"X-Service-Cert-Serial": own.serial}
    with environments.use(Environment.LIVE):
        make_policy(own.tenant, always_ask=["read"])

    refused = ask(gate, "/orders", headers)
    with environments.use(Environment.LIVE):
        decide(Approval.objects.get(id=refused.headers["x-service-approval"]))
    with Client(service.address, make_key(own.tenant)) as client:
        receipt = client.wait_for_approval(refused.headers["x-service-approval"]).receipt
    assert receipt is not None
    approved = {**headers, "X-Service-Approval": receipt}

    assert [refused.status, *(ask(gate, "/orders", approved).status for _ in range(2))] == [403, 200, 403]


def test_odd_credential_is_401(service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate) -> None:
    for value in ["Bearer \u00e9", "DPoP \u00ff", "Bearer " + "x" * 9_000, "Bearer  ,"]:
        gate = make_gate(service.address, guarded.gateway_key, action="read")

        assert ask(gate, "/orders", {"Authorization": value}).status == 401


def test_excluded_path_is_open_and_stripped_all_the_same(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate
) -> None:
    gate = make_gate(service.address, guarded.gateway_key, excluded=("/health",))

    found = ask(gate, "/health", FORGED)

    assert (found.status, found.body["agent"], found.seen) == (200, None, {})
    assert ask(gate, "/health/", FORGED).status != 200
    assert ask(gate, "/healthy", FORGED).status != 200


@pytest.mark.parametrize(
    "fate",
    [Fate.NO_ANSWER, Fate.ANSWER_LOST, Canned(302, headers={"Location": "/health"})],
    ids=["hangs", "breaks off", "redirects"],
)
def test_without_a_decision_it_is_503(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate, fate: Any
) -> None:
    with between(service.address, fate) as way:
        gate = make_gate(way.address, guarded.gateway_key, action="read", timeout=0.5)
        found = ask(gate, "/orders", {"X-Service-Cert-Serial": guarded.serial})

    assert (found.status, found.body) == (503, AWAY)
    assert found.headers["retry-after"] == "1"


@pytest.mark.parametrize("key", ["service_live_wrong", None], ids=["unknown", "without the scope"])
def test_refusal_of_the_gateways_own_key_is_not_the_clients(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate, key: str | None
) -> None:
    gate = make_gate(service.address, key or make_key(guarded.tenant, ["events:read"]), action="read")

    found = ask(gate, "/orders", {"X-Service-Cert-Serial": guarded.serial})

    assert (found.status, found.body) == (503, AWAY)
    assert "www-authenticate" not in found.headers


def test_refused_websocket_is_closed_before_it_is_accepted(
    service: Service, guarded: Guarded, make_gate: MakeGate
) -> None:
    gate = make_gate(service.address, guarded.gateway_key, action="read")
    scope = {"type": "websocket", "path": "/ws", "headers": [], "query_string": b"", "scheme": "ws"}

    sent = sent_by(gate, scope)

    assert [(message["type"], message["code"]) for message in sent] == [("websocket.close", 1008)]


def token_for(service: Service, guarded: Guarded, **more: Any) -> str:
    chain = [{"sub": "anna", "type": "human"}, {"sub": "reader", "type": "agent"}]
    answer = httpx.post(
        f"{service.address}/v1/agents/{guarded.agent.id}/delegation",
        json={"chain": chain, "scope": "read", **more},
        headers={"Authorization": f"Bearer {make_key(guarded.tenant)}"},
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"]["token"])


def test_holder_of_a_bound_token_proves_its_key(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate
) -> None:
    key, thief = DpopKey.generate(), DpopKey.generate()
    token = token_for(service, guarded, dpop_jkt=key.thumbprint)
    gate = make_gate(service.address, guarded.gateway_key, action="read")

    def present(holder: DpopKey, url: str = "http://api.test/orders") -> Asked:
        proof = holder.proof("GET", url, access_token=token)
        return ask(gate, "/orders?a=b", {"Authorization": f"DPoP {token}", "DPoP": proof})

    assert present(key).status == 200
    stolen, moved = present(thief), present(key, "http://api.test/other")
    assert (stolen.status, moved.status) == (401, 401)
    assert 'error="invalid_token"' in stolen.headers["www-authenticate"]
    assert 'error="invalid_dpop_proof"' in moved.headers["www-authenticate"]
    assert ask(gate, "/orders", {"Authorization": f"Bearer {token}"}).status == 401
