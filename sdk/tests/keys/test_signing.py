"""Requests that agents sign: as a library of others, this service and its token endpoint verify them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import requests
from http_message_signatures import HTTPMessageVerifier, MappingKeyResolver, algorithms

from agentid import Client, ConfigurationError
from agentid.keys import DpopKey
from agentid.signing import AgentKey, SignatureAuth
from delegation.agent_keys.message_signatures import SignedRequest, read
from delegation.jose.holder_keys import EDDSA, holder_key
from delegation.oauth.agent_clients import ASSERTION_TYPE, CLIENT_CREDENTIALS
from tests.served import Service

URL = "https://api.example.com:443/prices?symbol=BTC"
DOMAIN = "https://agents.example.com"


@pytest.fixture
def key(tmp_path: Path) -> AgentKey:
    return AgentKey.load_or_generate(tmp_path / "key.pem")


@pytest.mark.parametrize("body", [None, b"{}"])
@pytest.mark.parametrize("url", [URL, "https://api.example.com", "http://127.0.0.1:8080/a%20b"])
def test_library_of_others_verifies_a_signed_request(key: AgentKey, url: str, body: bytes | None) -> None:
    headers = key.headers("POST", url, signature_agent=DOMAIN, body=body)
    message = requests.Request("POST", url, headers=headers, data=body).prepare()
    known: Any = {key.thumbprint: key.private_key.public_key()}
    resolver = MappingKeyResolver(public_keys=known, private_keys={})
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=resolver)

    (found,) = verifier.verify(message, expect_tag="web-bot-auth")

    assert '"signature-agent";key="sig1"' in found.covered_components
    assert ('"content-digest"' in found.covered_components) is (body is not None)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("url", [URL, "https://api.example.com", "http://127.0.0.1:8080/a%20b"])
def test_service_verifies_a_signed_request(key: AgentKey, url: str, legacy: bool) -> None:
    headers = key.headers("POST", url, signature_agent=DOMAIN, body=b"{}", legacy=legacy)
    whole = url if "/" in url.partition("://")[2] else f"{url}/"
    asked = SignedRequest("POST", whole, {name.lower(): value for name, value in headers.items()})

    read(asked, now=datetime.now(UTC)).checked(holder_key(key.jwk, algorithm=EDDSA))


def test_keys_of_other_kinds_are_refused(tmp_path: Path) -> None:
    DpopKey.generate().save(tmp_path / "p256.pem")
    AgentKey.generate().save(tmp_path / "ed25519.pem")

    with pytest.raises(ConfigurationError):
        AgentKey.load(tmp_path / "p256.pem")
    with pytest.raises(ConfigurationError):
        DpopKey.load(tmp_path / "ed25519.pem")


def test_auth_signs_again_with_the_nonce_that_is_asked_for(key: AgentKey) -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(SimpleNamespace(headers=dict(request.headers)))  # type: ignore[arg-type]
        asked = {"Accept-Signature": 'sig1=("@method");tag="web-bot-auth";nonce="n-1"'}
        return httpx.Response(401, headers=asked) if len(seen) == 1 else httpx.Response(200)

    with httpx.Client(transport=httpx.MockTransport(answer), auth=SignatureAuth(key, DOMAIN)) as client:
        assert client.post(URL, content=b"{}").status_code == 200

    first, second = (one.headers["signature-input"] for one in seen)
    assert ';nonce="n-1"' in second
    assert ';nonce="n-1"' not in first
    assert '"content-digest"' in second


def test_agent_registers_its_key_and_gets_a_token_by_it(
    key: AgentKey, client: Client, service: Service
) -> None:
    scope = {"permitted_actions": ["read"]}
    agent = client.agents.register(name="signer", model_hash="sha256:9f86d081", metadata=scope)
    client.agents.certify(agent.id)

    registered = client.agent_keys.register(agent.id, jwk=key.jwk, proof=key.proof)

    assert registered.thumbprint == key.thumbprint
    listed: Any = client.agent_keys.directory(agent.tenant_id)
    assert {**key.jwk, "kid": key.thumbprint, "use": "sig"} in listed["keys"]
    issuer = client.oauth.metadata().issuer
    form = {"grant_type": CLIENT_CREDENTIALS, "scope": "read", "client_assertion_type": ASSERTION_TYPE}
    form["client_assertion"] = key.client_assertion(agent.did, issuer)
    answer = httpx.post(f"{service.address}/oauth/token", data=form)
    assert (answer.status_code, json.loads(answer.text)["scope"]) == (200, "read")
