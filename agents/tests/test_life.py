"""Reading, listing and editing agents; suspending and reinstating those without a certificate."""

from typing import Any

import pytest

from agents.models import Agent, parse_did
from agents.tests.factories import (
    make_active_agent,
    make_agent,
    make_retired_agent,
    make_suspended_agent,
)
from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_test_key


def test_uppercase_id_is_the_same_agent(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    assert client.get(f"/v1/agents/{str(agent.id).upper()}").status_code == 200


def test_pages_lose_and_repeat_nothing_when_timestamps_are_shared(client: ApiClient, tenant: Tenant) -> None:
    ids = {str(make_agent(tenant).id) for _ in range(7)}
    Agent.objects.update(created_at="2026-01-01T00:00:00Z")
    seen: list[str] = []
    query = "limit=2"

    while query:
        body = client.get(f"/v1/agents?{query}").json()
        seen += [row["id"] for row in body["data"]]
        query = f"limit=2&before={body['next_cursor']}" if body["has_next_page"] else ""

    assert len(seen) == 7
    assert set(seen) == ids


def test_heavy_metadata_fills_a_page_before_its_limit(client: ApiClient, tenant: Tenant) -> None:
    ids = [str(make_agent(tenant).id) for _ in range(7)]
    heavy = {f"key-{number}": "x" * 100 for number in range(10_000)}
    Agent.objects.filter(id__in=ids[1:]).update(metadata=heavy)
    pages: list[list[str]] = []
    query = "limit=100"

    while query:
        body = client.get(f"/v1/agents?{query}").json()
        pages.append([row["id"] for row in body["data"]])
        query = f"limit=100&before={body['next_cursor']}" if body["has_next_page"] else ""

    assert [len(page) for page in pages] == [4, 3]
    assert [agent for page in pages for agent in page] == ids[::-1]
    assert client.get("/v1/agents?limit=1").json()["data"][0]["id"] == ids[-1]


def test_profile_is_edited_and_audited(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)

    answer = client.patch(f"/v1/agents/{agent.id}", {"name": "new", "version": None})

    assert answer.status_code == 200
    assert answer.json()["data"]["name"] == "new"
    entry = AuditEntry.objects.about(agent.id).of_type("agent.updated").get()
    assert entry.metadata is not None
    assert entry.metadata["changed"] == ["name"]


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({"name": "new"}, ["name"]),
        ({"model": "new", "version": "9"}, ["model", "version"]),
        ({"model_hash": "sha256:new"}, ["model_hash"]),
        ({"metadata": {}}, ["permitted_actions"]),
        ({"metadata": {"permitted_actions": ["read", "trade"]}}, ["permitted_actions"]),
        ({"metadata": {"permitted_actions": ["read"], "team": "x"}}, []),
        ({"description": "new", "inbox_address": "a@example.com"}, []),
        ({"name": "new", "description": "new", "metadata": None}, ["name", "permitted_actions"]),
    ],
)
def test_an_edit_says_what_needs_a_renewal_to_count(
    client: ApiClient, tenant: Tenant, changes: dict[str, Any], needed: list[str]
) -> None:
    agent = make_active_agent(tenant, metadata={"permitted_actions": ["read"]})

    answer = client.patch(f"/v1/agents/{agent.id}", changes)

    assert answer.json()["data"]["renewal_needed_for"] == needed
    entry = AuditEntry.objects.about(agent.id).of_type("agent.updated").get()
    assert entry.metadata is not None
    assert entry.metadata["renewal_needed_for"] == needed
    assert "renewal_needed_for" not in client.get(f"/v1/agents/{agent.id}").json()["data"]


def test_an_edit_of_a_pending_agent_needs_no_renewal(client: ApiClient, tenant: Tenant) -> None:
    answer = client.patch(f"/v1/agents/{make_agent(tenant).id}", {"name": "new", "metadata": {"scopes": []}})

    assert answer.json()["data"]["renewal_needed_for"] == []


@pytest.mark.parametrize(("old", "new"), [(1, True), (0, False), (1, 1.0)])
def test_an_edit_that_python_calls_equal_is_one(
    client: ApiClient, tenant: Tenant, old: Any, new: Any
) -> None:
    agent = make_agent(tenant, metadata={"flag": old})

    client.patch(f"/v1/agents/{agent.id}", {"metadata": {"flag": new}})

    agent.refresh_from_db()
    assert agent.metadata is not None
    assert repr(agent.metadata["flag"]) == repr(new)


def test_agent_without_a_certificate_is_reinstated_to_pending(client: ApiClient, tenant: Tenant) -> None:
    agent = make_active_agent(tenant)

    suspended = client.post(f"/v1/agents/{agent.id}/suspend", {"reason": "odd trades"})
    reinstated = client.post(f"/v1/agents/{agent.id}/reinstate", {"reason": "cause fixed"})

    assert suspended.json()["data"]["status"] == "suspended"
    assert reinstated.json()["data"]["status"] == "pending"
    told = (
        AuditEntry.objects.about(agent.id).order_by("created_at", "id").values_list("event_type", flat=True)
    )
    assert list(told) == ["agent.created", "agent.suspended", "agent.reinstated"]


def test_impossible_moves_are_422(client: ApiClient, tenant: Tenant) -> None:
    retired, suspended, pending = (
        make_retired_agent(tenant),
        make_suspended_agent(tenant),
        make_agent(tenant),
    )
    tries = [
        (f"/v1/agents/{retired.id}/suspend", "Agent is retired"),
        (f"/v1/agents/{retired.id}/reinstate", "Agent is retired"),
        (f"/v1/agents/{suspended.id}/suspend", "Agent is already suspended"),
        (f"/v1/agents/{pending.id}/reinstate", "Only a suspended agent can be reinstated"),
    ]

    for path, message in tries:
        answer = client.post(path, {"reason": "x"})
        assert (answer.status_code, answer.json()["error"]) == (422, message)


def test_did_names_the_environment(api: ApiClient, tenant: Tenant) -> None:
    with environments.use(Environment.TEST):
        agent = make_agent(tenant)

    did = api.as_key(make_test_key(tenant)).get(f"/v1/agents/{agent.id}").json()["data"]["did"]

    parsed = parse_did(did)
    assert parsed is not None
    assert (parsed.environment, parsed.agent_id) == (Environment.TEST, agent.id)


@pytest.mark.parametrize(
    "text", ["", "did:web:x", "did:service:prod:01890000-0000-7000-8000-000000000000", "did:service:live:x"]
)
def test_other_dids_are_not_ours(text: str) -> None:
    assert parse_did(text) is None
