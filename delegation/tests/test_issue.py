"""`POST /v1/agents/{id}/delegation`."""

from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest

from agents.tests.factories import make_agent, make_retired_agent, make_suspended_agent
from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tenancy.models import Tenant
from compliance.tenancy.tests.factories import make_key, make_tenant, make_test_key
from compliance.tests.client import ApiClient
from delegation.models import TokenKey
from delegation.tests.factories import CHAIN

HIDDEN = (
    "\u00ad\u034f\u061c\u180e\u200b\u200d\u200f\u2028\u202e\u2060\u2067\u3164\ue000\ufe0f\ufeff\U000e0041"
)


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant))


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


def test_a_root_that_the_caller_names_is_asserted(client: ApiClient, tenant: Tenant) -> None:
    data = issue(client, make_agent(tenant)).json()["data"]

    assert data["root"] == {"assurance": "asserted", "issuer": None, "subject": None, "vouched_by": None}
    assert (data["bound_to"], data["token_id"]) == (None, claims_of(data["token"])["jti"])


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


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"chain": None}, "chain"),
        ({"chain": []}, "chain"),
        ({"chain": CHAIN * 3}, "chain"),
        ({"chain": "alice"}, "chain"),
        ({"chain": {}}, "chain"),
        ({"chain": ["alice"]}, "chain"),
        ({"chain": [{"sub": "a"}]}, "type"),
        ({"chain": [{"type": "human"}]}, "sub"),
        ({"chain": [{"sub": "a", "type": "robot"}]}, "type"),
        ({"chain": [{"sub": "a", "type": ["human"]}]}, "type"),
        ({"chain": [{"sub": "", "type": "human"}]}, "sub"),
        ({"chain": [{"sub": "x" * 257, "type": "human"}]}, "sub"),
        ({"chain": [{"sub": 5, "type": "human"}]}, "sub"),
        ({"chain": [{"sub": None, "type": "human"}]}, "sub"),
        ({"chain": [{"sub": "a\nb", "type": "human"}]}, "sub"),
        ({"chain": [{"sub": "a\u0000", "type": "human"}]}, "NUL"),
        *[({"chain": [{"sub": f"a{hidden}b", "type": "human"}]}, "sub") for hidden in HIDDEN],
        ({"audience": "https://api.example\u200b"}, "audience"),
        ({"scope": "x" * 501}, "scope"),
        ({"scope": ["read"]}, "scope"),
        ({"scope": "read\n"}, "scope"),
        ({"scope": 'a"b'}, "scope"),
        ({"scope": "é"}, "scope"),
        ({"audience": "x" * 257}, "audience"),
        ({"audience": ""}, "audience"),
        ({"audience": ["a"]}, "audience"),
        ({"ttl_seconds": 59}, "ttl_seconds"),
        ({"ttl_seconds": 86_401}, "ttl_seconds"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"ttl_seconds": -1}, "ttl_seconds"),
        ({"ttl_seconds": "600"}, "ttl_seconds"),
        ({"ttl_seconds": 600.0}, "ttl_seconds"),
        ({"ttl_seconds": True}, "ttl_seconds"),
        ({"ttl_seconds": 10**30}, "ttl_seconds"),
        ({"parent_token": 5}, "parent_token"),
        ({"parent_token": ""}, "parent_token"),
        ({"parent_token": "not a token"}, "parent_token"),
        ({"parent_token": "x" * 20_000}, "parent_token"),
    ],
)
def test_bad_shape_is_refused(
    client: ApiClient, tenant: Tenant, body: dict[str, Any], complaint: str
) -> None:
    answer = issue(client, make_agent(tenant), **body)

    assert answer.status_code == 400
    assert complaint in answer.json()["error"]


def test_missing_chain_and_other_bodies_are_refused(client: ApiClient, tenant: Tenant) -> None:
    path = f"/v1/agents/{make_agent(tenant).id}/delegation"

    assert client.post(path, {}).status_code == 400
    assert client.post(path, []).status_code == 400
    assert client.raw("POST", path, b"{").status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        {"chain": [CHAIN[0]]},
        {"chain": [CHAIN[0]] * 8},
        {"chain": [{"sub": "x" * 256, "type": "service"}]},
        {"chain": [{"sub": "<script>alert(1)</script>", "type": "human"}]},
        {"scope": "x" * 500},
        {"scope": ""},
        {"audience": "x" * 256},
        {"ttl_seconds": 60},
        {"ttl_seconds": 86_400},
    ],
)
def test_the_limits_themselves_are_allowed(client: ApiClient, tenant: Tenant, body: dict[str, Any]) -> None:
    answer = issue(client, make_agent(tenant), **body)

    assert answer.status_code == 200


@pytest.mark.parametrize("make", [make_suspended_agent, make_retired_agent])
def test_stopped_agents_can_not_delegate(client: ApiClient, tenant: Tenant, make: Any) -> None:
    answer = issue(client, make(tenant))

    assert answer.status_code == 422
    assert not AuditEntry.objects.filter(event_type="delegation.issued").exists()


@pytest.mark.parametrize(
    ("metadata", "scope", "status"),
    [
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
    ],
)
def test_scope_stays_within_the_permitted_actions(
    client: ApiClient, tenant: Tenant, metadata: Any, scope: str, status: int
) -> None:
    agent = make_agent(tenant, metadata=metadata)

    assert issue(client, agent, scope=scope).status_code == status


def test_the_first_action_beyond_is_named(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant, metadata={"permitted_actions": ["read"]})

    error = issue(client, agent, scope="read withdraw").json()["error"]

    assert error == "The scope exceeds the agent's permitted actions: withdraw"


@pytest.mark.parametrize("whose", ["foreign", "sandbox", "nobody", "nonsense"])
def test_what_is_not_ones_own_does_not_exist(client: ApiClient, tenant: Tenant, whose: str) -> None:
    ids = {"nobody": "00000000-0000-0000-0000-000000000000", "nonsense": "x"}
    if whose == "foreign":
        ids[whose] = str(make_agent(make_tenant("Other")).id)
    elif whose == "sandbox":
        key = make_test_key(tenant)
        assert key
        with environments.use(Environment.TEST):
            ids[whose] = str(make_agent(tenant).id)

    answer = client.post(f"/v1/agents/{ids[whose]}/delegation", {"chain": CHAIN})

    assert (answer.status_code, answer.json()) == (404, {"error": "Agent not found"})


def test_key_needs_the_scope(api: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    assert issue(api.as_key(make_key(tenant, ["agents:write"])), agent).status_code == 403
    assert issue(api.as_key(make_key(tenant, ["delegations:issue"])), agent).status_code == 200
    assert issue(api, agent).status_code == 401


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


def test_an_idempotency_key_gives_the_same_token(client: ApiClient, tenant: Tenant) -> None:
    path = f"/v1/agents/{make_agent(tenant).id}/delegation"

    first, again = (client.post(path, {"chain": CHAIN}, Idempotency_Key="k").json() for _ in range(2))

    assert first == again
    assert AuditEntry.objects.filter(event_type="delegation.issued").count() == 1
