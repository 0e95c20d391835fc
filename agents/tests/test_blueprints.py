"""Blueprints: what agents inherit, what they may state themselves, and which of them differ."""

from typing import Any

import pytest

from agents.blueprints.inheritance import brought_up, differing
from agents.models import Agent, Blueprint
from agents.tests.factories import make_agent, make_blueprint, make_retired_agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import AuditAction
from compliance.tests.client import ApiClient
from tenancy.models import Tenant

KIM = {"name": "Kim Berg", "email": "kim.berg@example.com"}
LEE = {"name": "Lee Sand", "email": "lee@example.com"}
FINANCES = {
    "max_single_trade_usd": 100.0,
    "daily_limit_usd": 500.0,
    "permitted_instruments": ["BTC-USD", "ETH-USD"],
    "permitted_venues": ["kraken"],
    "leverage_permitted": True,
    "max_leverage_ratio": 2.0,
}
WHOLE = {
    "name": "Traders",
    "model": "gpt-5",
    "version": "2",
    "model_hash": "sha256:cd",
    "permitted_actions": ["read", "pay"],
    "financial_scope": FINANCES,
    "owner": KIM,
    "backup_owner": None,
    "validity_days": 90,
    "alarm_budget": 0.02,
    "ask_policy": {"ask_from": "high", "always_ask": ["pay"], "ttl_seconds": 120},
}
INHERITED = ("model", "version", "model_hash", "financial_scope", "owner", "validity_days", "alarm_budget")


def create(client: ApiClient, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/v1/blueprints", {**WHOLE, **fields}).json()["data"]
    return found


def register(client: ApiClient, blueprint: dict[str, Any], **fields: Any) -> Any:
    return client.post("/v1/agents", {"name": "bot", "blueprint_id": blueprint["id"], **fields})


def test_blueprints_are_created_listed_fetched_and_changed(client: ApiClient) -> None:
    made = create(client)
    path = f"/v1/blueprints/{made['id']}"

    assert {name: made[name] for name in WHOLE} == WHOLE
    assert client.get("/v1/blueprints").json()["data"] == [made]
    assert client.get(path).json()["data"] == {**made, "differing": 0}
    changed = client.patch(path, {"name": "Other", "financial_scope": None, "owner": LEE}).json()["data"]
    assert (changed["name"], changed["financial_scope"], changed["owner"]) == ("Other", None, LEE)
    created, updated = AuditEntry.objects.about(made["id"]).order_by("created_at", "id")
    assert (created.event_type, updated.event_type) == ("blueprint.created", "blueprint.updated")
    assert (created.metadata or {})["owner"] == KIM
    assert (updated.metadata or {})["name"] == {"before": "Traders", "after": "Other"}
    assert (updated.metadata or {})["owner"] == {"before": KIM, "after": LEE}


def test_an_agent_inherits_what_it_does_not_state(client: ApiClient) -> None:
    blueprint = create(client)

    agent = register(client, blueprint, metadata={"note": "n"}, alarm_budget=None).json()["data"]

    assert agent["blueprint_id"] == blueprint["id"]
    assert {name: agent[name] for name in INHERITED} == {name: WHOLE[name] for name in INHERITED}
    assert agent["metadata"] == {"note": "n", "permitted_actions": ["read", "pay"]}
    assert Agent.objects.get(id=agent["id"]).own_fields == []


NARROW: list[tuple[str, Any, Any]] = [
    ("metadata", {"permitted_actions": ["read"]}, {"permitted_actions": ["read", "write"]}),
    ("validity_days", 30, 91),
    ("model_hash", "sha256:cd", "sha256:other"),
    ("model", "gpt-5", "gpt-4"),
    ("version", "2", "3"),
    *[
        ("financial_scope", {**FINANCES, name: narrow}, {**FINANCES, name: wide})
        for name, narrow, wide in (
            ("max_single_trade_usd", 99.5, 100.5),
            ("daily_limit_usd", 1, 501),
            ("permitted_instruments", [], ["SOL-USD"]),
            ("permitted_venues", ["kraken"], ["kraken", "other"]),
            ("max_leverage_ratio", 1, 3),
        )
    ],
    ("alarm_budget", 0.05, None),
    ("owner", LEE, None),
]


@pytest.mark.parametrize(("name", "narrow", "wide"), NARROW)
def test_an_agent_may_only_narrow(client: ApiClient, name: str, narrow: Any, wide: Any) -> None:
    blueprint = create(client)
    made = register(client, blueprint, **{name: narrow})
    assert made.status_code == 201, made.content
    assert made.json()["data"][name] == narrow
    path = f"/v1/agents/{register(client, blueprint).json()['data']['id']}"

    assert client.patch(path, {name: narrow}).status_code == 200
    if wide is not None:
        for answer in (register(client, blueprint, **{name: wide}), client.patch(path, {name: wide})):
            assert answer.status_code == 422
            assert answer.json()["error"].startswith("The agent would go beyond its blueprint: ")
    assert client.get(path).json()["data"][name] == narrow


def test_leverage_is_narrowed_only(client: ApiClient) -> None:
    without = {name: value for name, value in FINANCES.items() if name != "max_leverage_ratio"}
    blueprint = create(client, financial_scope={**FINANCES, "leverage_permitted": False})

    assert register(client, blueprint, financial_scope={**FINANCES}).status_code == 422
    assert register(client, create(client), financial_scope=without).status_code == 422
    unlevered = {**without, "leverage_permitted": False}
    assert register(client, create(client), financial_scope=unlevered).status_code == 201
    below = create(client, financial_scope={**FINANCES, "max_leverage_ratio": 0.5})
    assert register(client, below, financial_scope=unlevered).status_code == 422


def test_removing_a_value_inherits_it_again(client: ApiClient) -> None:
    blueprint = create(client)
    agent = register(client, blueprint, validity_days=3, metadata={"permitted_actions": []}, owner=LEE)
    path = f"/v1/agents/{agent.json()['data']['id']}"

    shown = client.patch(path, {"validity_days": None, "metadata": None, "owner": None}).json()["data"]

    assert shown["validity_days"] == 90
    assert shown["metadata"] == {"permitted_actions": ["read", "pay"]}
    assert shown["owner"] == KIM
    assert Agent.objects.get().own_fields == []


def test_what_is_inherited_again_follows_the_blueprint_even_where_it_was_equal(client: ApiClient) -> None:
    blueprint = create(client)
    path = f"/v1/agents/{register(client, blueprint, validity_days=30).json()['data']['id']}"
    client.patch(f"/v1/blueprints/{blueprint['id']}", {"validity_days": 30})

    client.patch(path, {"validity_days": None})
    client.patch(f"/v1/blueprints/{blueprint['id']}", {"validity_days": 90})

    agent = Agent.objects.get()
    assert agent.own_fields == []
    assert list(differing(Blueprint.objects.get())) == [agent]
    (entry,) = AuditEntry.objects.about(agent.id).of_type(AuditAction.AGENT_UPDATED)
    assert (entry.metadata or {})["changed"] == ["own_fields"]


def test_a_model_hash_is_the_agents_or_the_blueprints(client: ApiClient) -> None:
    blueprint = create(client, model_hash=None)

    for answer in (register(client, blueprint), client.post("/v1/agents", {"name": "bot"})):
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("model_hash: This field is required")
    assert register(client, blueprint, model_hash="sha256:ef").status_code == 201


def test_a_change_says_which_agents_differ(client: ApiClient) -> None:
    blueprint = create(client)
    follower = register(client, blueprint).json()["data"]["id"]
    narrow = register(client, blueprint, metadata={"permitted_actions": ["read"]}).json()["data"]["id"]
    path = f"/v1/blueprints/{blueprint['id']}"

    def differ() -> set[str]:
        found = client.get(f"/v1/agents?differs_from={blueprint['id']}").json()["data"]
        return {one["id"] for one in found}

    assert differ() == set()
    changed = client.patch(path, {"permitted_actions": ["read", "pay", "write"]}).json()["data"]
    assert (changed["differing"], differ()) == (1, {follower})
    assert client.patch(path, {"permitted_actions": ["pay"]}).json()["data"]["differing"] == 2
    assert differ() == {follower, narrow}
    assert client.patch(path, {"permitted_actions": ["read", "pay"]}).json()["data"]["differing"] == 0
    assert client.patch(path, {"permitted_actions": None}).json()["data"]["differing"] == 0
    by_filter = client.get(f"/v1/agents?blueprint_id={blueprint['id']}").json()["data"]
    assert {one["id"] for one in by_filter} == {follower, narrow}
    assert client.get(f"/v1/agents?blueprint_id={follower}").json()["data"] == []
    assert client.get(f"/v1/agents?differs_from={follower}").status_code == 404


def test_an_agent_that_is_behind_can_be_edited_and_not_widened(client: ApiClient) -> None:
    blueprint = create(client)
    path = f"/v1/agents/{register(client, blueprint).json()['data']['id']}"
    client.patch(f"/v1/blueprints/{blueprint['id']}", {"permitted_actions": ["read"], "validity_days": 5})

    assert client.patch(path, {"description": "d"}).status_code == 200
    assert client.patch(path, {"metadata": {"permitted_actions": ["pay"]}}).status_code == 422
    assert client.patch(path, {"validity_days": 6}).status_code == 422
    assert client.patch(path, {"metadata": {"permitted_actions": ["read"]}}).status_code == 200


OTHERS: list[dict[str, Any]] = [
    {},
    {"model": "other"},
    {"model": None, "model_hash": None, "version": None},
    {"permitted_actions": ["read"]},
    {"permitted_actions": ["read", "pay", "write"]},
    {"permitted_actions": []},
    *[
        {"financial_scope": {**FINANCES, name: value}}
        for name, value in (
            ("max_single_trade_usd", 50.0),
            ("daily_limit_usd", 1000.0),
            ("permitted_instruments", ["BTC-USD"]),
            ("permitted_venues", []),
            ("leverage_permitted", False),
            ("max_leverage_ratio", 1.0),
            ("max_leverage_ratio", 0.5),
        )
    ],
    {"financial_scope": {name: value for name, value in FINANCES.items() if name != "max_leverage_ratio"}},
    {"validity_days": 20},
    {"validity_days": 200},
    {"alarm_budget": 0.03},
    {"owner_name": LEE["name"], "owner_email": LEE["email"]},
    {
        "owner_name": None,
        "owner_email": None,
        "backup_owner_name": "B",
        "backup_owner_email": "b@example.com",
    },
]


@pytest.mark.parametrize("change", OTHERS)
def test_the_database_and_the_service_agree_who_differs(tenant: Tenant, change: dict[str, Any]) -> None:
    blueprint = make_blueprint(tenant, **without_people(WHOLE))
    stated: list[dict[str, Any]] = [
        {},
        {"metadata": {"permitted_actions": ["read"]}, "validity_days": 30},
        {"financial_scope": {**FINANCES, "max_single_trade_usd": 20.0}},
        {"financial_scope": {**FINANCES, "leverage_permitted": False, "permitted_instruments": []}},
        {"financial_scope": {**dict([*FINANCES.items()][:-1]), "leverage_permitted": False}},
        {"alarm_budget": 0.05, "owner_name": "Own", "owner_email": "own@example.com"},
        {"metadata": {"scopes": ["x"]}},
        {"metadata": {"scopes": ["x"], "permitted_actions": None}},
    ]
    agents = [make_agent(tenant, blueprint_id=blueprint.id, model_hash="", **one) for one in stated]
    make_retired_agent(tenant, blueprint_id=blueprint.id, model_hash="")
    Blueprint.objects.filter(id=blueprint.id).update(**change)
    blueprint.refresh_from_db()

    by_service = {one.id for one in agents if brought_up(Agent.objects.get(id=one.id), blueprint)}

    assert set(differing(blueprint).values_list("id", flat=True)) == by_service


def test_the_older_key_does_not_differ_from_an_empty_scope(client: ApiClient) -> None:
    blueprint = create(client, permitted_actions=[])
    assert register(client, blueprint, metadata={"scopes": ["x"]}).status_code == 201

    assert client.get(f"/v1/blueprints/{blueprint['id']}").json()["data"]["differing"] == 0


def without_people(fields: dict[str, Any]) -> dict[str, Any]:
    columns = {"owner_name": KIM["name"], "owner_email": KIM["email"]}
    return {name: value for name, value in fields.items() if not name.endswith("owner")} | columns


def test_another_person_is_put_in_place_in_blueprints_too(client: ApiClient) -> None:
    blueprint = create(client)
    register(client, blueprint)

    assert client.post("/v1/owners/replace", {"from": KIM["email"], "to": LEE}).json()["data"] == {
        "agents": 1
    }

    shown = client.get(f"/v1/blueprints/{blueprint['id']}").json()["data"]
    assert (shown["owner"], shown["differing"]) == (LEE, 0)
    assert AuditEntry.objects.about(blueprint["id"]).filter(event_type="blueprint.updated").count() == 1
