"""`/v1/approval-policies`: when people are asked."""

from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_blueprint
from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from gateway.access import services
from gateway.access.tests.factories import ONE, ask, make_policy
from gateway.models import AskPolicy
from gateway.tests.factories import make_permitted_agent, make_route
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant, make_test_key

PATH = "/v1/approval-policies"
POLICY = {"ask_from": "medium", "always_ask": ["pay", "read"], "ttl_seconds": 120}


@pytest.fixture
def writer(tenant: Tenant) -> ApiClient:
    return ApiClient(make_key(tenant, ["gateway:read", "gateway:write", "decisions:evaluate"]))


def put(client: ApiClient, applies_to: str, body: Any) -> Any:
    return client.put(f"{PATH}/{applies_to}", body)


def test_policies_are_set_listed_fetched_and_removed(writer: ApiClient, tenant: Tenant, agent: Agent) -> None:
    names = ["tenant", f"agent:{agent.id}", f"route:{make_route(tenant).id}"]

    made = [put(writer, name, POLICY).json()["data"] for name in names]

    assert [one["applies_to"] for one in made] == names
    assert {name: made[0][name] for name in POLICY} == POLICY
    assert writer.get(PATH).json()["data"] == made
    assert writer.get(f"{PATH}/{names[1]}").json()["data"] == made[1]
    assert writer.delete(f"{PATH}/{names[1]}").status_code == 204
    assert writer.get(f"{PATH}/{names[1]}").status_code == 404
    assert writer.delete(f"{PATH}/{names[1]}").status_code == 404


def test_put_replaces_the_whole_policy(writer: ApiClient, tenant: Tenant) -> None:
    put(writer, "tenant", POLICY)

    found = put(writer, "tenant", {"ask_from": "never"}).json()["data"]

    assert (found["ask_from"], found["always_ask"], found["ttl_seconds"]) == ("never", [], 900)
    assert AskPolicy.objects.count() == 1


def test_changes_are_audited(writer: ApiClient, tenant: Tenant) -> None:
    put(writer, "tenant", POLICY)
    put(writer, "tenant", {**POLICY, "ask_from": "high"})
    writer.delete(f"{PATH}/tenant")

    entries = AuditEntry.objects.for_tenant(tenant.id)
    first, second = entries.of_type("ask_policy.set").order_by("id")
    assert ((first.metadata or {})["before"], (first.metadata or {})["after"]) == (None, POLICY)
    assert (second.metadata or {})["before"]["ask_from"] == "medium"
    assert entries.of_type("ask_policy.removed").count() == 1


NAMELESS = [
    "x",
    "agent",
    "agent:",
    "agent:x",
    "route:x",
    "tenant:x",
    "agent:0198f2a4-7c1e-7d52-9d0f-3a1b2c3d4e5f",
]


@pytest.mark.parametrize("name", NAMELESS)
def test_policy_of_nothing_is_a_404(writer: ApiClient, name: str) -> None:
    assert put(writer, name, POLICY).status_code == 404
    assert writer.get(f"{PATH}/{name}").status_code == 404
    assert writer.delete(f"{PATH}/{name}").status_code == 404


def test_another_tenants_and_the_other_environments_are_404(
    writer: ApiClient, tenant: Tenant, agent: Agent
) -> None:
    rival = make_tenant("Rival")
    foreign, route = make_permitted_agent(rival), make_route(rival)
    make_policy(rival, f"agent:{foreign.id}")
    with environments.use(Environment.TEST):
        sandbox = make_permitted_agent(make_tenant("Sandbox"))

    for name in (f"agent:{foreign.id}", f"route:{route.id}", f"agent:{sandbox.id}"):
        assert put(writer, name, POLICY).status_code == 404
        assert writer.get(f"{PATH}/{name}").status_code == 404
        assert writer.delete(f"{PATH}/{name}").status_code == 404
    assert writer.get(PATH).json()["data"] == []
    assert put(ApiClient(make_test_key(tenant)), f"agent:{agent.id}", POLICY).status_code == 404
    assert AskPolicy.objects.count() == 1


def test_tenant_has_so_many_policies_at_most(
    writer: ApiClient, tenant: Tenant, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MOST_POLICIES", 1)
    put(writer, "tenant", POLICY)

    assert put(writer, f"agent:{agent.id}", POLICY).status_code == 409
    assert put(writer, "tenant", POLICY).status_code == 200


def test_policy_goes_with_its_route(writer: ApiClient, tenant: Tenant) -> None:
    route = make_route(tenant)
    put(writer, f"route:{route.id}", POLICY)

    writer = ApiClient(make_key(tenant))
    assert writer.delete(f"/v1/gateway/routes/{route.id}").status_code == 204
    assert not AskPolicy.objects.exists()


@pytest.mark.usefixtures("committed")
def test_change_counts_at_once_in_the_same_process(asker: ApiClient, tenant: Tenant, agent: Agent) -> None:
    before = asker.post(ONE, ask(agent)).json()["context"]["outcome"]
    make_policy(tenant, always_ask=["read"])
    after = asker.post(ONE, ask(agent)).json()["context"]["outcome"]

    assert (before, after) == ("allow", "ask")


def outcome(asker: ApiClient, body: Any) -> str:
    found: str = asker.post(ONE, body).json()["context"]["outcome"]
    return found


@pytest.mark.usefixtures("committed")
def test_the_blueprints_policy_counts_between_the_agents_and_the_tenants(
    asker: ApiClient, agent: Agent, tenant: Tenant
) -> None:
    always = {"ask_from": "never", "always_ask": ["read"], "ttl_seconds": 60}
    blueprint = make_blueprint(tenant, ask_policy=always)
    plain = make_blueprint(tenant)
    kind, own, bare = (
        make_permitted_agent(tenant, blueprint_id=one.id) for one in (blueprint, blueprint, plain)
    )
    make_policy(tenant, f"agent:{own.id}")
    make_policy(tenant, always_ask=["pay"])

    reading = [outcome(asker, ask(one)) for one in (kind, own, bare, agent)]
    assert reading == ["ask", "allow", "allow", "allow"]
    assert [outcome(asker, ask(one, "pay")) for one in (kind, own, bare)] == ["allow", "allow", "ask"]
