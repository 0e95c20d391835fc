"""`POST /v1/agents/{id}/delegation`."""

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from compliance.tests.client import ApiClient
from delegation.models import TokenKey
from delegation.tests.factories import CHAIN
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant

HIDDEN = (
    "\u00ad\u034f\u061c\u180e\u200b\u200d\u200f\u2028\u202e\u2060\u2067\u3164\ue000\ufe0f\ufeff\U000e0041"
)


def issue(client: ApiClient, agent: Any, **body: Any) -> Any:
    return client.post(f"/v1/agents/{agent.id}/delegation", {"chain": CHAIN, **body})


def claims_of(token: str) -> dict[str, Any]:
    return jwt.decode(token, options={"verify_signature": False})


def test_token_is_issued(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant, metadata={"permitted_actions": ["read", "trade"]})

    began = datetime.now(UTC)
    answer = issue(client, agent, scope="read trade", audience="https://api.example", ttl_seconds=600)

    assert answer.status_code == 200
    data = answer.json()["data"]
    assert set(data) == {
        "token", "chain", "principal", "scope", "issued_at", "expires_at", "token_id", "root", "bound_to",
    }  # fmt: skip
    assert (data["chain"], data["principal"], data["scope"]) == (CHAIN, "price-checker", "read trade")
    issued, expires = (datetime.fromisoformat(data[name]) for name in ("issued_at", "expires_at"))
    assert expires - issued == timedelta(seconds=600)
    # A token tells whole seconds.
    assert began - timedelta(seconds=1) < issued <= datetime.now(UTC)


def test_claims_are_those_of_rfc_8693(client: ApiClient, tenant: Tenant, settings: Any) -> None:
    agent = make_agent(tenant)

    data = issue(client, agent, scope="read", audience="https://api.example").json()["data"]

    claims = claims_of(data["token"])
    assert set(claims) == {
        "iss", "sub", "sub_type", "act", "aud", "scope", "iat", "nbf", "exp", "jti", "agent_id", "env",
        "status",
    }  # fmt: skip
    assert (claims["iss"], claims["env"]) == (settings.TOKEN_ISSUER, "live")
    assert (claims["sub"], claims["act"]["sub"]) == ("alice@example.com", "price-checker")
    assert (claims["aud"], claims["agent_id"]) == ("https://api.example", str(agent.id))
    assert claims["exp"] == datetime.fromisoformat(data["expires_at"]).timestamp()
    assert claims["iat"] == claims["nbf"] == datetime.fromisoformat(data["issued_at"]).timestamp()


@pytest.mark.parametrize("place", [0, 1])
def test_a_chain_names_no_other_agent_by_a_did_of_the_service(
    client: ApiClient, tenant: Tenant, place: int
) -> None:
    agent, sibling, foreign = make_agent(tenant), make_agent(tenant), make_agent(make_tenant("Beside"))
    for sub, status in [
        ("did:service:live:{own}", 200),
        ("alice@example.com", 200),
        ("did:web:example.com", 200),
        ("did:service:live:{foreign}", 422),
        ("did:service:live:{sibling}", 422),
        ("did:service:test:{own}", 422),
        ("did:service:live:00000000-0000-7000-8000-000000000000", 422),
        ("DID:service:live:{own}", 422),
        ("did:Service:live:{foreign}", 422),
        (" did:service:live:{foreign}", 422),
        ("did:service:", 422),
        ("urn:did:service:live:{foreign}", 422),
        ("did%3Aservice:live:{foreign}", 422),
        ("\uff44\uff49\uff44:service:live:{foreign}", 422),
        ("did:service:live:{foreign}#key", 422),
    ]:
        actor = {"sub": sub.format(own=agent.id, sibling=sibling.id, foreign=foreign.id), "type": "agent"}
        chain = [{"sub": "someone", "type": "human"}] * place + [actor]

        answer = issue(client, agent, chain=chain)

        assert answer.status_code == status, answer.content


def test_an_agent_named_by_its_parent_token_stays_in_the_chain(client: ApiClient, tenant: Tenant) -> None:
    first, second = make_agent(tenant), make_agent(tenant)
    chain = [{"sub": "alice", "type": "human"}, {"sub": first.did, "type": "agent"}]
    parent = issue(client, first, chain=chain).json()["data"]["token"]
    extended = [*chain, {"sub": second.did, "type": "sub_agent"}]

    answer = issue(client, second, chain=extended, parent_token=parent)

    assert answer.json()["data"]["principal"] == second.did
    assert issue(client, second, chain=extended).status_code == 422


def test_header_names_the_active_key(client: ApiClient, tenant: Tenant) -> None:
    token = issue(client, make_agent(tenant)).json()["data"]["token"]

    active = TokenKey.objects.get(status="active")
    assert jwt.get_unverified_header(token) == {"alg": "ES256", "typ": "delegation+jwt", "kid": active.kid}


@pytest.mark.parametrize(
    "absent", [{}, {"scope": None, "audience": None, "ttl_seconds": None, "parent_token": None}]
)
def test_defaults_are_an_hour_no_audience_and_no_scope(
    client: ApiClient, tenant: Tenant, absent: dict[str, None]
) -> None:
    agent = make_agent(tenant, metadata={"permitted_actions": ["read"]})

    data = issue(client, agent, **absent).json()["data"]

    claims = claims_of(data["token"])
    assert claims["exp"] - claims["iat"] == 3600
    assert data["scope"] == claims["scope"] == ""
    assert "aud" not in claims


def test_every_issuance_is_audited_in_full(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    token = issue(client, agent, scope="read  read trade").json()["data"]["token"]

    entry = AuditEntry.objects.for_tenant(tenant.id).get(event_type="delegation.issued")
    assert (entry.affected_id, entry.actor_type) == (str(agent.id), "user")
    assert entry.metadata is not None
    assert entry.metadata["principal"] == "price-checker"
    assert entry.metadata["chain"] == CHAIN
    assert entry.metadata["scope"] == "read trade"
    assert entry.metadata["scope_checked"] is False
    assert entry.metadata["token_id"] == claims_of(token)["jti"]
    assert token not in str(entry.metadata)


def test_bad_shape_is_refused(client: ApiClient, tenant: Tenant) -> None:
    table: list[tuple[dict[str, Any], str]] = [
        ({"chain": [{"sub": "a\nb", "type": "human"}]}, "sub"),
        *[({"chain": [{"sub": f"a{hidden}b", "type": "human"}]}, "sub") for hidden in HIDDEN],
        ({"audience": "https://api.example\u200b"}, "audience"),
        ({"scope": "read\n"}, "scope"),
        ({"scope": 'a"b'}, "scope"),
        ({"parent_token": "not a token"}, "parent_token"),
    ]
    for body, complaint in table:
        answer = issue(client, make_agent(tenant), **body)

        assert answer.status_code == 400
        assert complaint in answer.json()["error"]


def test_scope_stays_within_the_permitted_actions(client: ApiClient, tenant: Tenant) -> None:
    table: list[tuple[Any, str, int]] = [
        (None, "anything goes", 200),
        ({}, "anything", 200),
        ({"permitted_actions": ["read", "trade"]}, "trade", 200),
        ({"permitted_actions": ["read", "trade"]}, "trade read", 200),
        ({"permitted_actions": ["read"]}, "", 200),
        ({"permitted_actions": ["read"]}, "read trade", 422),
        ({"permitted_actions": ["read"]}, "READ", 422),
        ({"permitted_actions": ["read"]}, "rea", 422),
        ({"permitted_actions": []}, "read", 422),
        ({"permitted_actions": []}, "", 422),
        ({"scopes": ["read"]}, "read", 422),
        ({"scopes": ["read"]}, "", 422),
    ]
    for metadata, scope, status in table:
        agent = make_agent(tenant, metadata=metadata)

        assert issue(client, agent, scope=scope).status_code == status


def test_without_a_token_key_the_service_is_unavailable(api: ApiClient) -> None:
    tenant = make_tenant()

    answer = issue(api.as_key(make_key(tenant)), make_agent(tenant))

    assert answer.status_code == 503
    assert answer.json()["error"].startswith("KMS not configured")


def test_without_its_private_half_the_service_is_unavailable(client: ApiClient, tenant: Tenant) -> None:
    uri = TokenKey.objects.get(status="active").uri
    TokenKey.objects.update(uri=uri.split("id=")[0] + "id=%00%01;type=private")

    answer = issue(client, make_agent(tenant))

    assert answer.status_code == 503
    assert not AuditEntry.objects.filter(event_type="delegation.issued").exists()
