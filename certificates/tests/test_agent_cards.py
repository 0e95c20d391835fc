"""`GET /v1/agent-cards/{did}`: A2A cards, checked with `a2a-sdk` and by `cryptography` alone."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
import rfc8785
from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard
from a2a.utils.proto_utils import validate_proto_required_fields
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from jwt import PyJWK

from agents import services as agents
from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.models import Certificate, SignedCard
from certificates.public import agent_cards as cards, messages
from certificates.public.messages import sign_octets
from certificates.tests.factories import (
    CARD,
    make_carded_agent,
    make_certificate,
    make_certified_agent,
    renew_certificate,
)
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from compliance.tests.threads import THREADS, at_once
from tenancy.models import Tenant
from tenancy.tests.factories import ACTOR, make_key

RICH = {
    **CARD,
    "protocol_binding": "HTTP+JSON",
    "streaming": False,
    "input_modes": ["text/plain", "application/json"],
    "output_modes": ["text/plain"],
    "token_schemes": ["bearer", "dpop"],
    "provider_url": "https://example.com",
    "documentation_url": "https://example.com/docs",
}
NAMES = ["bot", "b\u00f6t \U0001f916 \u20ac \u2028", 'b"o\\t', "o" * 255]


def get(api: ApiClient, agent: Agent, **headers: str) -> Any:
    return api.get(f"/v1/agent-cards/{agent.did}", **headers)


def shown(api: ApiClient, agent: Agent) -> dict[str, Any]:
    answer = get(api, agent)
    assert answer.status_code == 200, answer.content
    card: dict[str, Any] = answer.json()
    return card


def header_of(card: dict[str, Any]) -> dict[str, Any]:
    (signature,) = card["signatures"]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(signature["protected"] + "=="))
    return found


def keys_of(api: ApiClient, agent: Agent) -> Callable[[str | None, str | None], PyJWK]:
    """How a peer finds the key: by `kid` in the agent's DID document, never by `jku`."""
    document = api.get(f"/1.0/identifiers/{agent.did}").json()["didDocument"]
    keys = {one["id"]: PyJWK(one["publicKeyJwk"]) for one in document["verificationMethod"]}

    def find(kid: str | None, jku: str | None) -> PyJWK:
        assert jku is None
        return keys[kid or ""]

    return find


def check_with_sdk(api: ApiClient, agent: Agent, card: dict[str, Any]) -> AgentCard:
    parsed = parse_agent_card(json.loads(json.dumps(card)))
    create_signature_verifier(keys_of(api, agent), ["RS256"])(parsed)
    return parsed


def check_alone(agent: Agent, card: dict[str, Any]) -> None:
    """RFC 7515 §5.2 by hand, over RFC 8785 of the card without its signatures."""
    row = Certificate.objects.filter(agent=agent).order_by("-issued_at", "-id")[0]
    key = x509.load_pem_x509_certificate(row.certificate_pem.encode()).public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    (signature,) = card["signatures"]
    content = {name: value for name, value in card.items() if name != "signatures"}
    payload = base64.urlsafe_b64encode(rfc8785.dumps(content)).rstrip(b"=")
    octets = signature["protected"].encode() + b"." + payload
    key.verify(
        base64.urlsafe_b64decode(signature["signature"] + "=="), octets, padding.PKCS1v15(), hashes.SHA256()
    )


@pytest.fixture
def agent(tenant: Tenant) -> Agent:
    return make_carded_agent(tenant)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wishes", [CARD, RICH])
def test_card_verifies_with_the_sdk_and_alone(
    api: ApiClient, tenant: Tenant, name: str, wishes: dict[str, Any]
) -> None:
    agent = make_carded_agent(tenant, name=name, agent_card=wishes, description="")

    card = shown(api, agent)

    parsed = check_with_sdk(api, agent, card)
    check_alone(agent, card)
    validate_proto_required_fields(parsed)
    assert parsed.name == name


def test_card_says_what_the_tenant_and_the_certificate_say(api: ApiClient, tenant: Tenant) -> None:
    agent = make_carded_agent(tenant, agent_card=RICH, description="Trades.", version="2.1")
    serial = Certificate.objects.get(agent=agent).serial_number

    parsed = check_with_sdk(api, agent, shown(api, agent))

    (interface,), (extension,) = parsed.supported_interfaces, parsed.capabilities.extensions
    assert (parsed.description, parsed.version) == ("Trades.", "2.1")
    assert (interface.url, interface.protocol_binding) == (CARD["url"], "HTTP+JSON")
    assert interface.protocol_version == "1.0"
    assert [skill.id for skill in parsed.skills] == ["read", "pay"]
    assert dict(extension.params)["did"] == agent.did
    assert dict(extension.params)["certificate_serial"] == serial
    assert set(parsed.security_schemes) == {"bearer", "dpop"}
    assert (parsed.provider.organization, parsed.provider.url) == (tenant.name, "https://example.com")
    assert parsed.capabilities.streaming is False
    assert parsed.capabilities.HasField("streaming")


def test_header_names_the_key_and_nothing_to_fetch(api: ApiClient, agent: Agent) -> None:
    serial = Certificate.objects.get(agent=agent).serial_number

    assert header_of(shown(api, agent)) == {"alg": "RS256", "kid": f"{agent.did}#{serial}", "typ": "JOSE"}


def test_message_signature_over_a_card_is_no_card(api: ApiClient, agent: Agent) -> None:
    """Whoever may sign messages can't sign a card: the SDK does not look at `typ`."""
    content = {**shown(api, agent), "provider": {"organization": "Forged", "url": "https://evil.example"}}
    del content["signatures"]
    certificate = Certificate.objects.get(agent=agent)

    signed = messages.sign_message(certificate=certificate, payload=content, as_jws=True)

    assert signed.jws is not None
    protected, _, signature = signed.jws.split(".")
    raw = base64.urlsafe_b64encode(base64.b64decode(signed.signature)).decode().rstrip("=")
    for forged in (signature, raw):
        proof = {"protected": protected, "signature": forged}
        with pytest.raises(InvalidSignaturesError):
            check_with_sdk(api, agent, {**content, "signatures": [proof]})


def test_card_is_published_and_withdrawn_by_patch(api: ApiClient, client: ApiClient, tenant: Tenant) -> None:
    agent = make_certified_agent(tenant, metadata={"permitted_actions": ["read"]})

    assert client.patch(f"/v1/agents/{agent.id}", {"agent_card": CARD}).json()["data"]["agent_card"] == CARD
    assert get(api, agent).status_code == 200
    assert client.patch(f"/v1/agents/{agent.id}", {"agent_card": None}).status_code == 200
    assert get(api, agent).status_code == 404


@pytest.mark.parametrize("metadata", [None, {"permitted_actions": []}, {"scopes": ["read"]}])
def test_agent_that_declares_no_action_has_no_card(
    api: ApiClient, tenant: Tenant, metadata: dict[str, Any] | None
) -> None:
    assert get(api, make_carded_agent(tenant, metadata=metadata)).status_code == 404


def test_sandbox_agents_card_is_signed_in_the_sandbox(api: ApiClient, tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        agent = make_carded_agent(Tenant.objects.get(id=tenant.id))

        check_with_sdk(api, agent, shown(api, agent))

    assert not SignedCard.objects.exists()
    assert api.get(f"/v1/agent-cards/{agent.did.replace(':test:', ':live:')}").status_code == 404


@pytest.fixture
def signatures(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The serial numbers of the keys that signed, in order; the real key signs."""
    made: list[str] = []
    real = sign_octets

    def counted(certificate: Certificate, octets: bytes) -> bytes:
        made.append(certificate.serial_number)
        return real(certificate, octets)

    monkeypatch.setattr(cards, "sign_octets", counted)
    return made


@pytest.mark.usefixtures("committed")
def test_card_asked_for_at_once_is_signed_once(api: ApiClient, signatures: list[str], agent: Agent) -> None:
    found = at_once(lambda: get(api, agent).content)

    assert len(found) == THREADS
    assert len(set(found)) == 1
    assert len(signatures) == 1


def test_card_is_signed_anew_when_it_changes(
    api: ApiClient, client: ApiClient, signatures: list[str], agent: Agent
) -> None:
    first = shown(api, agent)

    client.patch(f"/v1/agents/{agent.id}", {"description": "Another one"})
    second = shown(api, agent)

    assert second["description"] == "Another one"
    assert first["signatures"] != second["signatures"]
    assert len(signatures) == 2
    assert SignedCard.objects.filter(agent=agent).count() == 1
    check_with_sdk(api, agent, second)


def test_card_is_signed_anew_after_renewal(
    api: ApiClient, tenant: Tenant, signatures: list[str], agent: Agent
) -> None:
    old = Certificate.objects.get(agent=agent)
    before = shown(api, agent)
    make_certificate(make_agent(tenant))  # leaves a key in the pool

    new = renew_certificate(old)
    after = shown(api, agent)

    assert signatures == [old.serial_number, new.serial_number]
    assert header_of(after)["kid"] == f"{agent.did}#{new.serial_number}"
    check_with_sdk(api, agent, after)
    with pytest.raises(KeyError):
        check_with_sdk(api, agent, before)


def test_profile_counts_at_once_and_actions_as_certified(
    api: ApiClient, tenant: Tenant, agent: Agent
) -> None:
    changes = {"name": "renamed", "metadata": {"permitted_actions": ["read", "pay", "drain"]}}
    agents.update(tenant_id=tenant.id, agent_id=agent.id, changes=changes, actor=ACTOR, now=now())

    card = shown(api, agent)

    assert card["name"] == "renamed"
    assert [skill["id"] for skill in card["skills"]] == ["read", "pay"]


def test_card_may_be_cached_for_seconds_and_has_a_validator(api: ApiClient, agent: Agent) -> None:
    answer = get(api, agent)

    again = get(api, agent, If_None_Match=answer["ETag"])

    assert answer["Content-Type"] == "application/json"
    assert "max-age=10" in answer["Cache-Control"]
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", answer["ETag"])


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        [],
        "x",
        {"url": "http://agents.example"},
        {"url": "javascript:alert(1)"},
        {"url": "https://"},
        {"url": "https://a b"},
        {"url": "https://a\n"},
        {"url": "https://\u0431.example"},
        {"url": "https://" + "a" * 2_048},
        {"url": None},
        {**CARD, "protocol_binding": "SOAP"},
        {**CARD, "streaming": "yes"},
        {**CARD, "input_modes": []},
        {**CARD, "input_modes": [""]},
        {**CARD, "input_modes": ["text/plain"] * 21},
        {**CARD, "token_schemes": ["basic"]},
        {**CARD, "provider_url": "ftp://x"},
    ],
)
def test_malformed_card_is_400(tenant: Tenant, api: ApiClient, wishes: Any) -> None:
    caller = api.as_key(make_key(tenant))

    answer = caller.post("/v1/agents", {"name": "a", "model_hash": "h", "agent_card": wishes})

    assert answer.status_code == 400
    assert "agent_card" in answer.json()["error"]


def test_card_holds_no_member_of_the_tenants_own(api: ApiClient, client: ApiClient) -> None:
    """So that no claim of a JWT, as `sub` or `exp`, can be signed by way of a card."""
    card = {**CARD, "iss": "x", "sub": "x", "signatures": [], "jku": "https://evil.example"}
    metadata = {"permitted_actions": ["read"], "note": "hush"}
    body = {
        "name": "a",
        "model_hash": "h",
        "agent_card": card,
        "metadata": metadata,
        "inbox_address": "hush@x",
    }
    made = client.post("/v1/agents", body).json()["data"]
    assert made["agent_card"] == CARD
    agent = Agent.objects.get(id=made["id"])
    make_certificate(agent)

    answer = get(api, agent)

    assert set(answer.json()) == {
        *("name", "description", "version", "supportedInterfaces", "capabilities", "skills", "signatures"),
        *("defaultInputModes", "defaultOutputModes"),
    }
    assert b"hush" not in answer.content
