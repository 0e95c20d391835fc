"""The documented configuration of nginx: a real nginx before a real API, asking the real service."""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.waiting import eventually
from delegation import services as delegation
from delegation.agent_keys.tests.signers import Signer, register
from delegation.token_keys import keyring
from events.models import BehaviorEvent
from gateway.deciding.identity import NAMES
from gateway.models import GatewayRoute
from gateway.tests import doors
from gateway.tests.doors import NAME, WAIT_SECONDS, Nginx, ProtectedApi, Reply, RunningService
from gateway.tests.factories import (
    Bound,
    make_permitted_agent,
    make_route,
    serial_of,
)
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant

pytestmark = [
    pytest.mark.usefixtures("committed"),
    pytest.mark.skipif(not Path(doors.NGINX).exists(), reason="nginx is not installed"),
]

URI = f"http://{NAME}/payments/1"
SPOOFED: dict[str, Any] = {
    f"X-Service-{name}": "spoofed" for name in (*NAMES, "Gateway-Decision", "Gateway-Route")
}
PAGE = "https://app.example"
CHANGED = {
    f'# "{PAGE}"': f'"{PAGE}"',
    "set $gateway_route orders;": "set $gateway_route orders; client_max_body_size 20m;",
    '# "~*^payments:': '"~*^payments:',
}
"""What the guide tells those to change who have browsers, large uploads and WebSockets."""


@dataclass
class Door:
    """All of it, and an agent of the gateway's tenant; the API is behind the route `orders`."""

    service: RunningService
    api: ProtectedApi
    nginx: Nginx
    tenant: Tenant
    agent: Agent

    def ask_serial(self, path: str = "/orders/7", **more: Any) -> Reply:
        return self.nginx.ask(path, **{"X-Service-Cert-Serial": serial_of(self.agent), **more})


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    keyring.forget()
    delegation.bootstrap(now=now())
    tenant = make_tenant()
    make_route(tenant, name="orders", credentials=["serial"])
    make_route(tenant, name="payments", credentials=["dpop"], nonce_required=True)
    key = make_key(tenant, ["gateway:authorize"])
    with (
        doors.running_service() as service,
        doors.protected_api() as api,
        doors.running_nginx(tmp_path, service=service.port, api=api.port, key=key, changed=CHANGED) as nginx,
    ):
        yield Door(service, api, nginx, tenant, make_permitted_agent(tenant))


def error_of(reply: Reply) -> tuple[int, str]:
    return reply.status, json.loads(reply.body)["error"]


def identity_of(headers: dict[str, str]) -> dict[str, str]:
    return {
        name: headers[f"x-service-{name.lower()}"] for name in NAMES if f"x-service-{name.lower()}" in headers
    }


def shown_by(bound: Bound, **proof: Any) -> dict[str, Any]:
    """The credential of a client that asks for `URI`; `proof` goes to its proof."""
    found = bound.headers(uri=URI, **proof)
    return {name: found[name] for name in ("Authorization", "DPoP")}


def test_request_that_may_pass_reaches_the_api_whole_and_with_its_identity(door: Door) -> None:
    reply = door.ask_serial("/orders/7?x=%2F", method="POST", body=b"b" * 9_000)

    method, path, _, body = door.api.seen[-1]
    assert (reply.status, method, path, len(body)) == (200, "POST", "/orders/7?x=%2F", 9_000)
    told = identity_of(door.api.last)
    assert set(told) == set(NAMES)
    assert (told["Agent-Id"], told["Action"]) == (str(door.agent.id), "pay")
    assert door.service.seen_by_view == 0


def test_identity_that_a_client_claims_never_reaches_the_api(door: Door) -> None:
    passed = door.ask_serial(**{**SPOOFED, "X-Service-Cert-Serial": serial_of(door.agent)})
    assert passed.status == 200
    assert "spoofed" not in door.api.last.values()

    underscored = [(name.replace("-", "_"), value) for name, value in SPOOFED.items()]
    twice = [pair for name, value in SPOOFED.items() for pair in ((name, value), (name.lower(), value))]
    for headers in (underscored, twice, list(SPOOFED.items())):
        assert door.nginx.ask_exactly("GET", "/health", [("Host", NAME), *headers]).status == 200
        assert identity_of(door.api.last) == {}
        assert "spoofed" not in door.api.last.values()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("/payments/..%2Fhealth", "/health"),
        ("/payments/1/%2e%2e/..//health", "/health"),
        ("/payments/..%2Forders%2F7%3Fx", "/orders/7%3Fx"),
        ("/a%0D%0AX-Service-Agent-Id:%20x%25", "/a%0D%0AX-Service-Agent-Id:%20x%25"),
    ],
)
def test_api_gets_the_path_that_was_decided_about(door: Door, written: str, read: str) -> None:
    assert door.ask_serial(written).status == 200

    assert door.api.seen[-1][1] == read


def test_nginx_keeps_its_connections_to_the_service(door: Door) -> None:
    replies = [door.ask_serial() for _ in range(10)] + [door.nginx.ask() for _ in range(10)]

    assert [reply.status for reply in replies] == [200] * 10 + [401] * 10
    assert door.service.listening.taken <= 2


def test_no_refused_request_reaches_the_api(door: Door) -> None:
    replies = [
        door.nginx.ask(),
        door.nginx.ask(**SPOOFED),
        door.nginx.ask(X_Service_Cert_Serial="nonsense"),
        door.ask_serial(method="DELETE", Host="other.example"),
        door.ask_serial("/payments/1"),
        door.nginx.ask("/_authorize", X_Service_Cert_Serial=serial_of(door.agent)),
    ]

    assert [reply.status for reply in replies[:3]] == [401] * 3
    assert [reply.status for reply in replies[3:]] == [421, 401, 404]
    assert door.api.seen == []
    assert replies[4].header("WWW-Authenticate") is not None


def test_scope_violation_is_told_in_the_words_of_the_specification_and_recorded_once(door: Door) -> None:
    suspended = make_permitted_agent(door.tenant, metadata={"permitted_actions": ["read"]})
    serial = serial_of(suspended)
    for _ in range(3):
        reply = door.nginx.ask("/orders/7?card=1", method="POST", X_Service_Cert_Serial=serial)
        assert error_of(reply) == (403, "Scope violation")

    events = BehaviorEvent.objects.filter(agent_id=suspended.id)
    entries = AuditEntry.objects.for_tenant(door.tenant.id).of_type(AuditAction.GATEWAY_SCOPE_VIOLATION)
    assert (events.count(), entries.count(), door.api.seen) == (1, 1, [])
    assert events.get().details["path"] == "/orders/7"


def test_proven_token_passes_with_a_nonce_and_once(door: Door) -> None:
    bound = Bound(door.agent, {"scope": "read pay"})
    first = door.nginx.ask("/payments/1", **shown_by(bound))
    nonce = first.header("DPoP-Nonce")
    assert first.status == 401
    assert 'error="use_dpop_nonce"' in (first.header("WWW-Authenticate") or "")

    proven = shown_by(bound, nonce=nonce)
    assert door.nginx.ask("/payments/1", **proven).status == 200
    assert (door.api.last["x-service-credential"], "dpop" in door.api.last) == ("dpop", False)
    assert "authorization" not in door.api.last
    assert door.nginx.ask("/payments/1", **proven).status == 401
    assert door.nginx.ask("/payments/2", **shown_by(bound, nonce=nonce)).status == 401
    second = shown_by(bound, nonce=nonce)["DPoP"]
    twice = [("Host", NAME), *shown_by(bound, nonce=nonce).items(), ("DPoP", second)]
    assert door.nginx.ask_exactly("GET", "/payments/1", twice).status in (400, 401)


def test_gateway_with_a_wrong_key_lets_nothing_pass_and_blames_no_client(door: Door, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    for key in ("service_live_" + "x" * 43, make_key(door.tenant, ["agents:read"])):
        with doors.running_nginx(folder, service=door.service.port, api=door.api.port, key=key) as nginx:
            assert nginx.ask(X_Service_Cert_Serial=serial_of(door.agent)).status == 503

    assert door.api.seen == []


def test_nothing_passes_while_the_service_is_away(door: Door) -> None:
    assert door.ask_serial().status == 200
    door.service.stop.set()

    assert eventually(lambda: door.ask_serial().status == 503, seconds=WAIT_SECONDS)
    seen = len(door.api.seen)
    assert error_of(door.ask_serial()) == (503, "The request could not be authorized now")
    assert (len(door.api.seen), door.nginx.ask("/health").status) == (seen, 200)


def test_changed_route_counts_within_a_second(door: Door) -> None:
    assert door.ask_serial().status == 200
    with environments.use(Environment.LIVE):
        door.tenant.gateway_routes.filter(name="orders").update(credentials=["dpop"])
    changed = time.monotonic()
    passed = [0.0]

    def is_refused() -> bool:
        asked = time.monotonic()
        status = door.ask_serial().status
        if status == 200:
            passed.append(asked - changed)
        return status == 401

    assert eventually(is_refused)
    # When the last request was sent that passed, however late it was answered.
    assert passed[-1] < 1


def test_body_within_the_limit_of_its_location_passes(door: Door) -> None:
    assert door.ask_serial(method="POST", body=b"b" * 11_000_000).status == 200
    assert len(door.api.seen[-1][3]) == 11_000_000


def test_browser_learns_without_a_credential_what_a_page_may_send(door: Door) -> None:
    asked: dict[str, Any] = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    reply = door.nginx.ask("/payments/1", method="OPTIONS", **asked)
    assert (reply.status, reply.body) == (204, b"")
    assert reply.header("Access-Control-Allow-Origin") == PAGE
    assert "POST" in (reply.header("Access-Control-Allow-Methods") or "")
    assert "DPoP" in (reply.header("Access-Control-Allow-Headers") or "")

    refused = [
        door.nginx.ask("/payments/1", method="OPTIONS", **{**asked, "Origin": "https://evil.example"}),
        door.nginx.ask("/payments/1", method="OPTIONS", **{**asked, "Origin": f"{PAGE}.evil.example"}),
        door.nginx.ask("/payments/1", method="OPTIONS", Origin=PAGE),
    ]

    assert [one.status for one in refused] == [401] * 3
    assert [one.header("Access-Control-Allow-Origin") for one in refused] == [None, None, PAGE]
    assert door.api.seen == []


@pytest.mark.parametrize("path", ["/orders/7", "/payments/1"])
def test_page_reads_why_it_was_refused_and_what_the_api_answers(door: Door, path: str) -> None:
    passed, denied = door.ask_serial(Origin=PAGE), door.nginx.ask(path, Origin=PAGE)

    for reply in (passed, denied):
        assert reply.header("Access-Control-Allow-Origin") == PAGE
    assert (passed.status, denied.status) == (200, 401)
    assert "DPoP-Nonce" in (denied.header("Access-Control-Expose-Headers") or "")
    assert door.ask_serial(Origin="https://evil.example").header("Access-Control-Allow-Origin") is None


def test_websocket_passes_where_the_location_lets_it_and_the_agent_may(door: Door) -> None:
    opening: dict[str, Any] = {"Upgrade": "websocket", "Connection": "Upgrade"}
    assert door.nginx.ask("/payments/1", **opening).status == 401
    assert door.api.seen == []
    bound = Bound(door.agent, {"scope": "read"})
    nonce = door.nginx.ask("/payments/1", **shown_by(bound)).header("DPoP-Nonce")

    with socket.create_connection(("127.0.0.1", door.nginx.port), timeout=WAIT_SECONDS) as client:
        headers = {"Host": NAME, **opening, **shown_by(bound, nonce=nonce)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        client.sendall(f"GET /payments/1 HTTP/1.1\r\n{lines}\r\n".encode())
        client.sendall(b"ping")
        answer = b"".join(iter(lambda: client.recv(1000), b""))

    assert answer.startswith(b"HTTP/1.1 101")
    assert answer.endswith(b"ping")
    assert door.api.last["x-service-agent-id"] == str(door.agent.id)
    assert door.ask_serial(**opening).status == 200
    assert "upgrade" not in door.api.last


def test_signed_request_passes_once_with_the_nonce_that_nginx_hands_on(door: Door) -> None:
    GatewayRoute.objects.filter(tenant=door.tenant, name="payments").update(credentials=["dpop", "httpsig"])
    signer = Signer()
    register(door.agent, signer.holder)
    digest = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
    covered = ("@method", "@target-uri", "content-digest", '"signature-agent";key="sig1"')

    def signed(**more: Any) -> dict[str, Any]:
        return signer.headers(url=URI, covered=covered, sent={"Content-Digest": digest}, **more)

    lacking = door.nginx.ask("/payments/1", **signed())
    asked = (lacking.header("Accept-Signature") or "").rpartition('nonce="')[2].rstrip('"')
    headers = signed(nonce=asked)
    passed, again = (door.nginx.ask("/payments/1", **headers) for _ in range(2))

    assert error_of(lacking) == (401, "Signature refused: it must carry the nonce given here")
    assert passed.status == 200
    assert identity_of(door.api.last)["Credential"] == "httpsig"
    assert identity_of(door.api.last)["Agent-Id"] == str(door.agent.id)
    assert error_of(again) == (401, "Signature refused: it was used before")
    assert len(door.api.seen) == 1
    assert door.service.seen_by_view == 0
