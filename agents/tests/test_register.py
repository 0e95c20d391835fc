"""`POST /v1/agents`."""

from typing import Any

import pytest

from agents.models import Agent
from auditlog.models import AuditEntry
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant

FINANCIAL_SCOPE = {
    "max_single_trade_usd": 10_000,
    "daily_limit_usd": 50_000.5,
    "permitted_instruments": ["BTC-USD"],
    "permitted_venues": [],
    "leverage_permitted": False,
}


@pytest.fixture
def client(api: ApiClient) -> ApiClient:
    return api.as_key(make_key(make_tenant()))


def test_agent_is_registered_as_pending(api: ApiClient) -> None:
    tenant = make_tenant()
    body = {
        "name": "trade-bot",
        "model_hash": "sha256:ab",
        "model": "gpt-5",
        "version": "2.1",
        "description": "trades",
        "financial_scope": FINANCIAL_SCOPE,
        "metadata": {"permitted_actions": ["read", "trade"], "team": None},
    }

    answer = api.as_key(make_key(tenant)).post("/v1/agents", body)

    assert answer.status_code == 201
    data = answer.json()["data"]
    assert {name: data[name] for name in body} == body
    assert data["tenant_id"] == str(tenant.id)
    assert data["status"] == "pending"
    assert data["inbox_address"] is None
    assert data["did"] == f"did:service:live:{data['id']}"
    assert data["created_at"] == data["updated_at"]
    assert data["created_at"].endswith("Z")


def test_registration_is_audited(client: ApiClient) -> None:
    agent = client.post("/v1/agents", {"name": "a", "model_hash": "h"}).json()["data"]

    entry = AuditEntry.objects.about(agent["id"]).get()
    assert (entry.event_type, entry.actor_type) == ("agent.created", "user")


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"name": "a", "model_hash": "h", "metadata": {"x": "é" * 33_000}}, "metadata"),
        ({"name": "a", "model_hash": "h", "metadata": {"permitted_actions": "read"}}, "permitted_actions"),
        ({"name": "a", "model_hash": "h", "metadata": {"permitted_actions": [1]}}, "permitted_actions"),
    ],
)
def test_bad_fields_are_named(client: ApiClient, body: dict[str, Any], names: str) -> None:
    answer = client.post("/v1/agents", body)

    assert answer.status_code == 400
    assert names in answer.json()["error"]
    assert Agent.objects.count() == 0


def test_older_key_scopes_gives_an_empty_scope(client: ApiClient) -> None:
    agent = client.post("/v1/agents", {"name": "a", "model_hash": "h", "metadata": {"scopes": ["read"]}})

    assert Agent.objects.get(id=agent.json()["data"]["id"]).permitted_actions == []


def test_idempotency_key_gives_the_same_agent(client: ApiClient) -> None:
    body = {"name": "a", "model_hash": "h"}

    first = client.post("/v1/agents", body, Idempotency_Key="k1")
    again = client.post("/v1/agents", body, Idempotency_Key="k1")
    other = client.post("/v1/agents", {**body, "name": "b"}, Idempotency_Key="k1")

    assert (first.status_code, again.status_code, other.status_code) == (201, 201, 409)
    assert first.json() == again.json()
    assert again["Idempotent-Replayed"] == "true"
    assert Agent.objects.count() == 1
