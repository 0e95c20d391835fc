"""POST /v1/events: both spellings, the verdict in the answer, every status, nothing across a border."""

import json
from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent, AgentStatus
from auditlog.models import AuditEntry
from certificates.tests.factories import make_certified_agent
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.core.json_values import MAX_OCTETS
from compliance.tests.client import ApiClient
from events.models import ActionType
from events.tests.conftest import World, shared_world
from tenancy.tests.factories import make_key, make_tenant

PATH = "/v1/events"


world = shared_world


def test_event_is_scored_and_stored(world: World) -> None:
    answer = world.api.post(PATH, world.report(details={"tool": "get_weather"}))

    assert answer.status_code == 201
    data = answer.json()["data"]
    stored = world.events().get()
    assert data == {
        "id": str(stored.id),
        "agent_id": str(world.agent.id),
        "action_type": "api_call",
        "risk_score": stored.risk_score,
        "risk_band": "low",
        "occurred_at": data["occurred_at"],
        "details": {"tool": "get_weather"},
    }
    assert 0 <= stored.risk_score < 0.3
    assert stored.reasons
    assert stored.model_version


@pytest.mark.parametrize("action_type", ActionType.values)
def test_every_action_type_is_accepted(world: World, action_type: str) -> None:
    answer = world.api.post(PATH, world.report(action_type))

    assert answer.status_code == 201
    assert answer.json()["data"]["action_type"] == action_type


def test_camel_case_spelling_is_accepted(world: World) -> None:
    chain, decision = new_id(), new_id()
    body = {
        "agentId": str(world.agent.id),
        "actionType": "data_access",
        "chainId": str(chain),
        "decisionId": str(decision),
        "sessionId": "s-1",
        "occurredAt": "2026-01-02T03:04:05.678+02:00",
        "details": {"resource": "r"},
    }

    answer = world.api.post(PATH, body)

    stored = world.events().get()
    assert answer.status_code == 201
    assert answer.json()["data"]["occurred_at"] == "2026-01-02T01:04:05.678000Z"
    assert (stored.chain_id, stored.session_id, stored.details) == (chain, "s-1", {"resource": "r"})
    assert stored.decision_id == decision


def test_guide_spelling_is_accepted(world: World) -> None:
    answer = world.api.post(PATH, world.report("data_access", payload={"resource": "r"}))

    assert answer.status_code == 201
    assert answer.json()["data"]["details"] == {"resource": "r"}


def test_same_value_in_both_spellings_is_accepted(world: World) -> None:
    answer = world.api.post(PATH, world.report(actionType="api_call", details={"a": 1}, payload={"a": 1}))

    assert answer.status_code == 201


@pytest.mark.parametrize(
    "more",
    [
        {"actionType": "data_access"},
        {"agentId": "00000000-0000-4000-8000-000000000000"},
        {"details": {"a": 1}, "payload": {"a": 2}},
        {"details": {"a": 1}, "payload": {"a": True}},
        {"payload": {"a": [{"b": 0}]}, "details": {"a": [{"b": False}]}},
        {"details": {"a": 1}, "payload": {"a": 1.0}},
        {"session_id": "a", "sessionId": "b"},
    ],
)
def test_spellings_that_disagree_are_refused(world: World, more: dict[str, Any]) -> None:
    answer = world.api.post(PATH, world.report(**more))

    assert answer.status_code == 400
    assert "two spellings" in answer.json()["error"]
    assert not world.events().exists()


@pytest.mark.parametrize("omitted", [{}, {"details": None}, {"payload": None}])
def test_details_left_out_are_empty(world: World, omitted: dict[str, Any]) -> None:
    answer = world.api.post(PATH, world.report(**omitted))

    assert answer.json()["data"]["details"] == {}


def test_event_without_a_time_occurred_when_received(world: World) -> None:
    world.api.post(PATH, world.report())

    stored = world.events().get()
    assert stored.occurred_at == stored.received_at


@pytest.mark.parametrize(
    "body",
    [
        {"action_type": "API_CALL"},
        {"agent_id": "{00000000-0000-4000-8000-000000000000}"},
        {"details": {"a": "\x00"}},
        {"occurred_at": "1999-12-31T23:59:59Z"},
        {"occurred_at": "0001-01-01T00:00:00+14:00"},
        {"occurred_at": "9999-12-31T23:59:59-14:00"},
    ],
)
def test_value_that_a_schema_cannot_refuse_is_refused(world: World, body: dict[str, Any]) -> None:
    answer = world.api.post(PATH, {**world.report(), **body})

    assert answer.status_code == 400
    assert answer.json()["error"]
    assert not world.events().exists()


@pytest.mark.parametrize(("octets", "status"), [(MAX_OCTETS, 201), (MAX_OCTETS + 1, 400)])
@pytest.mark.parametrize("letter", ["x", "\u00e9"])
def test_details_have_a_size(world: World, letter: str, octets: int, status: int) -> None:
    room = octets - len('{"t":""}')
    text = letter * (room // len(letter.encode()) - 1)
    details = {"t": text + "x" * (room - len(text.encode()))}

    one = world.api.post(PATH, world.report(details=details))
    batch = world.api.post("/v1/events/batch", {"events": [world.report(details=details)]})

    assert one.status_code == batch.json()["data"][0]["status"] == status
    if status == 400:
        assert one.json() == {"error": "details: Must take at most 65536 octets as JSON."}


def test_time_more_than_five_minutes_ahead_is_refused(world: World) -> None:
    soon, later = (now() + timedelta(minutes=minutes) for minutes in (4, 6))

    assert world.api.post(PATH, world.report(occurred_at=soon.isoformat())).status_code == 201
    assert world.api.post(PATH, world.report(occurred_at=later.isoformat())).status_code == 400


def test_agent_of_another_tenant_is_not_found(world: World, api: ApiClient) -> None:
    stranger = api.as_key(make_key(make_tenant("Other")))

    answer = stranger.post(PATH, world.report())

    assert answer.status_code == 404
    assert answer.json() == {"error": "Agent not found"}
    assert not world.events().exists()


def test_low_event_writes_no_audit_entry(world: World) -> None:
    before = AuditEntry.objects.for_tenant(world.tenant.id).count()

    world.api.post(PATH, world.report())

    assert AuditEntry.objects.for_tenant(world.tenant.id).count() == before


@pytest.mark.parametrize("profile", [{}, None, {"permitted_actions": ["api_call", "withdraw"]}])
@pytest.mark.parametrize("is_known", [False, True])
def test_the_scope_that_counts_is_the_certified_one(
    api: ApiClient, profile: dict[str, Any] | None, is_known: bool
) -> None:
    """`is_known`: the process has scored the agent before, so it holds what it was told of it.

    Then the agent has used a permitted name too, and one outside the scope breaks the rule.
    """
    tenant = make_tenant()
    client = api.as_key(make_key(tenant))
    agent = make_certified_agent(tenant, metadata={"permitted_actions": ["read_market_data"]})
    body = {"agent_id": str(agent.id), "action_type": "api_call", "details": {"tool": "withdraw"}}
    if is_known:
        client.post(PATH, {**body, "details": {"tool": "read_market_data"}})

    edited = client.patch(f"/v1/agents/{agent.id}", {"metadata": profile})

    assert edited.json()["data"]["renewal_needed_for"] == ["permitted_actions"]
    assert client.post(PATH, body).json()["data"]["risk_band"] == ("high" if is_known else "medium")

    client.post(f"/v1/agents/{agent.id}/renew")

    assert client.post(PATH, body).json()["data"]["risk_band"] == "low"


def test_rolling_risk_rises_with_the_worst_event(world: World) -> None:
    world.api.post(PATH, world.report())
    calm = Agent.objects.get(id=world.agent.id)
    world.api.post(PATH, world.report("transaction_anomaly"))
    world.api.post(PATH, world.report())
    risky = Agent.objects.get(id=world.agent.id)

    assert 0 < calm.risk_score < 0.3
    assert risky.risk_score >= 0.6
    assert risky.status == AgentStatus.ACTIVE


def test_ingest_has_a_rate_limit_of_its_own(world: World) -> None:
    ingest = world.api.post(PATH, world.report())
    listing = world.api.get(PATH)

    assert int(ingest["X-RateLimit-Limit"]) > int(listing["X-RateLimit-Limit"])


@pytest.mark.parametrize(
    "number", [10**30, -(10**30), 2**64, 1e308, 1.7976931348623157e308, 5e-324, 0.1, 10**400], ids=repr
)
def test_numbers_of_any_size_come_back_as_sent(world: World, number: float) -> None:
    answer = world.api.post(PATH, world.report(details={"n": number}))

    assert answer.status_code == 201
    (listed,) = json.loads(world.api.get(PATH).content)["data"]
    for told in (json.loads(answer.content)["data"], listed):
        assert type(number)(told["details"]["n"]) == number


def test_idempotency_key_repeats_numbers_beyond_64_bits(world: World) -> None:
    body = world.report(details={"n": 10**30})

    first = world.api.post(PATH, body, Idempotency_Key="k")
    second = world.api.post(PATH, body, Idempotency_Key="k")

    assert json.loads(first.content) == json.loads(second.content)
    assert b"1000000000000000000000000000000" in second.content
