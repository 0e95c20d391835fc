"""What a protected resource says of itself (RFC 9728), and where its refusals say that."""

import re
from typing import Any

import httpx
import pytest

from agentid.errors import ConfigurationError
from agentid.middleware.asgi import AsgiGate
from agentid.middleware.gate import challenge_with, metadata_url
from agentid.middleware.mcp import McpGate
from tests.between import Canned, Fate, between
from tests.middleware.conftest import Ask, Guarded, MakeGate, asgi_app, over_http
from tests.served import Service

RESOURCE = "https://api.example.com/orders"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
URL = f"https://api.example.com{WELL_KNOWN}/orders"
NAMED = f'resource_metadata="{URL}"'


@pytest.mark.parametrize(
    ("resource", "url"),
    [
        ("https://api.example.com", f"https://api.example.com{WELL_KNOWN}"),
        ("https://api.example.com/", f"https://api.example.com{WELL_KNOWN}"),
        (RESOURCE, URL),
        ("https://api.example.com:8443/a/b/", f"https://api.example.com:8443{WELL_KNOWN}/a/b/"),
        ("http://[::1]:8000/mcp", f"http://[::1]:8000{WELL_KNOWN}/mcp"),
    ],
)
def test_well_known_name_stands_before_the_path(resource: str, url: str) -> None:
    assert metadata_url(resource) == url


@pytest.mark.parametrize(
    "resource",
    [
        *(
            "",
            "/orders",
            "ftp://a",
            "https://",
            "https://a?b=c",
            "https://a/#b",
            "https://a@b/",
            "https://a/\n",
        ),
        *('https://a/"b', "https://a/\x00", "https://a/\u00fc", " https://a"),
    ],
)
def test_what_cannot_be_a_resource_is_refused(make_gate: MakeGate, resource: str) -> None:
    with pytest.raises(ConfigurationError, match="resource"):
        make_gate("http://127.0.0.1:9", "key", resource=resource)


def test_every_challenge_says_where() -> None:
    told = 'Bearer realm="a, DPoP b=c \\" Bearer d=", error="e", DPoP realm="f", algs="ES256 x"'

    assert challenge_with("u", told) == (
        'Bearer resource_metadata="u", realm="a, DPoP b=c \\" Bearer d=", error="e", '
        'DPoP resource_metadata="u", realm="f", algs="ES256 x"'
    )


def test_metadata_names_the_service_and_what_it_takes(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate
) -> None:
    gate = make_gate(service.address, guarded.gateway_key, action="read", resource=RESOURCE)

    found = ask(gate, f"{WELL_KNOWN}/orders", {})

    server = httpx.get(f"{service.address}/.well-known/oauth-authorization-server").json()
    assert found.status == 200
    assert found.headers["content-type"] == "application/json"
    assert found.headers["cache-control"].startswith("public, max-age=")
    assert found.body == {
        "resource": RESOURCE,
        "authorization_servers": [server["issuer"]],
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": server["dpop_signing_alg_values_supported"],
        "scopes_supported": ["read"],
    }
    assert server["issuer"] == service.address


def test_other_paths_and_resources_without_a_url_are_decided_about(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate
) -> None:
    named = make_gate(service.address, guarded.gateway_key, action="read", resource=RESOURCE)
    nameless = make_gate(service.address, guarded.gateway_key, action="read")

    assert ask(named, WELL_KNOWN, {}).status == 401
    assert ask(named, f"{WELL_KNOWN}/orders/", {}).status == 401
    found = ask(nameless, WELL_KNOWN, {})
    assert (found.status, "resource_metadata" in found.headers["www-authenticate"]) == (401, False)


def test_401_says_where_the_metadata_is(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate
) -> None:
    gate = make_gate(service.address, guarded.gateway_key, action="read", resource=RESOURCE)

    missing = ask(gate, "/orders", {})
    invalid = ask(gate, "/orders", {"Authorization": "Bearer nonsense"})
    unknown = ask(gate, "/orders", {"X-Service-Cert-Serial": "00ff"})
    passed = ask(gate, "/orders", {"X-Service-Cert-Serial": guarded.serial})

    assert (missing.status, invalid.status, unknown.status, passed.status) == (401, 401, 401, 200)
    assert f"Bearer {NAMED}" in missing.headers["www-authenticate"]
    assert f"DPoP {NAMED}" in missing.headers["www-authenticate"]
    assert re.search(f'Bearer {NAMED}, [^,]+, error="invalid_token"', invalid.headers["www-authenticate"])
    assert NAMED in unknown.headers["www-authenticate"]


def test_metadata_is_kept_and_a_failure_is_not(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate
) -> None:
    with between(service.address, Canned(500), Fate.PASSED, Canned(500)) as way:
        gate = make_gate(way.address, guarded.gateway_key, resource=RESOURCE)
        found = [ask(gate, f"{WELL_KNOWN}/orders", {}).status for _ in range(4)]

    assert found == [503, 200, 200, 200]
    assert len(way.seen) == 2


@pytest.mark.parametrize("fate", [Canned(500), Canned(200, b"<h1>"), Canned(200, b"{}")])
def test_without_the_service_there_is_no_metadata(
    service: Service, guarded: Guarded, ask: Ask, make_gate: MakeGate, fate: Any
) -> None:
    with between(service.address, fate) as way:
        gate = make_gate(way.address, guarded.gateway_key, resource=RESOURCE)
        found = ask(gate, f"{WELL_KNOWN}/orders", {})

    assert found.status == 503


def test_client_finds_the_authorization_server_over_http(
    service: Service, guarded: Guarded, make_gate: MakeGate
) -> None:
    gate = make_gate(service.address, guarded.gateway_key, action="read", resource=RESOURCE)

    with over_http(AsgiGate(asgi_app, gate)) as address:
        refused = httpx.get(f"{address}/orders")
        (url, *_) = re.findall(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])
        told = httpx.get(address + httpx.URL(url).path).json()
    (issuer,) = told["authorization_servers"]
    server = httpx.get(f"{issuer}/.well-known/oauth-authorization-server").json()

    assert (refused.status_code, told["resource"]) == (401, RESOURCE)
    assert server["token_endpoint"] == f"{service.address}/oauth/token"


def test_scopes_of_tools_are_named_with_the_gates_own(
    service: Service, guarded: Guarded, make_gate: MakeGate
) -> None:
    gate = make_gate(service.address, guarded.gateway_key, action="read", resource=RESOURCE)
    unknown = make_gate(service.address, guarded.gateway_key, action=lambda asked: "read", resource=RESOURCE)

    found = []
    for each in (gate, unknown):
        with over_http(McpGate(asgi_app, each, tools={"change": "write"})) as address:
            found.append(httpx.get(f"{address}{WELL_KNOWN}/orders").json())

    assert found[0]["scopes_supported"] == ["read", "write"]
    assert "scopes_supported" not in found[1]
