"""Setting and showing the mode of an agent."""

from typing import Any

import pytest

from agents.models import Agent
from agents.tests.factories import make_agent, make_retired_agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from tenancy import services as tenancy
from tenancy.models import Enforcement, Tenant
from tenancy.tests.factories import make_key, make_test_key

BOTH = pytest.mark.parametrize("environment", list(Environment))


def observe(tenant: Tenant) -> None:
    tenancy.change_setting(
        name="enforcement",
        tenant_id=tenant.id,
        value=Enforcement.OBSERVE,
        reason="pilot",
        actor=Actor.system("tests"),
        now=now(),
    )


def modes(shown: dict[str, Any]) -> tuple[str | None, str]:
    return shown["enforcement"], shown["effective_enforcement"]


def changes_of(agent_id: object) -> list[dict[str, Any]]:
    """The metadata of the agent's changes of mode, oldest first."""
    found = AuditEntry.objects.about(agent_id).of_type("agent.enforcement_changed")
    return [entry.metadata or {} for entry in found.order_by("created_at", "id")]


@BOTH
def test_mode_is_set_changed_and_left_to_the_tenant(
    api: ApiClient, tenant: Tenant, environment: Environment
) -> None:
    make = make_test_key if environment is Environment.TEST else make_key
    client = api.as_key(make(tenant))
    with environments.use(environment):
        observe(tenancy.get_tenant(tenant_id=tenant.id))

        made = client.post("/v1/agents", {"name": "bot", "model_hash": "sha256:ab"}).json()["data"]
        path = f"/v1/agents/{made['id']}"
        edits = [client.patch(path, {"enforcement": mode}) for mode in ("enforce", None)]
        (listed,) = client.get("/v1/agents").json()["data"]

        assert modes(made) == (None, "observe")
        assert [edit.status_code for edit in edits] == [200] * 2
        assert [modes(edit.json()["data"]) for edit in edits] == [
            ("enforce", "enforce"),
            (None, "observe"),
        ]
        assert modes(client.get(path).json()["data"]) == modes(listed) == (None, "observe")
        assert [(one["before"], one["after"]) for one in changes_of(made["id"])] == [
            (None, "enforce"),
            ("enforce", None),
        ]
        assert not AuditEntry.objects.about(made["id"]).of_type("agent.updated").exists()


def test_default_is_to_enforce(client: ApiClient) -> None:
    made = client.post("/v1/agents", {"name": "bot", "model_hash": "sha256:ab"}).json()["data"]

    assert modes(made) == (None, "enforce")
    entry = AuditEntry.objects.about(made["id"]).of_type("agent.created").get()
    assert "enforcement" not in (entry.metadata or {})


def test_mode_given_at_registration_is_audited(client: ApiClient, tenant: Tenant) -> None:
    observe(tenant)
    body = {"name": "bot", "model_hash": "sha256:ab", "enforcement": "enforce"}

    made = client.post("/v1/agents", body).json()["data"]

    assert modes(made) == ("enforce", "enforce")
    entry = AuditEntry.objects.about(made["id"]).of_type("agent.created").get()
    assert (entry.metadata or {})["enforcement"] == "enforce"


def test_other_edits_leave_the_mode_alone(client: ApiClient, tenant: Tenant) -> None:
    observe(tenant)
    agent = make_agent(tenant, enforcement="enforce")

    edited = client.patch(f"/v1/agents/{agent.id}", {"name": "new"}).json()["data"]
    client.patch(f"/v1/agents/{agent.id}", {"enforcement": "enforce"})

    assert modes(edited) == ("enforce", "enforce")
    assert changes_of(agent.id) == []


def test_profile_and_mode_of_one_edit_are_audited_apart(client: ApiClient, tenant: Tenant) -> None:
    agent = make_agent(tenant)
    observe(tenant)

    client.patch(f"/v1/agents/{agent.id}", {"name": "new", "enforcement": "enforce"})

    (change,) = changes_of(agent.id)
    entry = AuditEntry.objects.about(agent.id).of_type("agent.updated").get()
    assert (change["before"], change["after"]) == (None, "enforce")
    assert (entry.metadata or {})["changed"] == ["name"]


def test_whose_mode_one_may_not_set(api: ApiClient, client: ApiClient, tenant: Tenant) -> None:
    mine, retired = make_agent(tenant), make_retired_agent(tenant)
    body = {"enforcement": "enforce"}

    ended = client.patch(f"/v1/agents/{retired.id}", body)
    reader = api.as_key(make_key(tenant, ["agents:read"])).patch(f"/v1/agents/{mine.id}", body)

    assert (ended.status_code, reader.status_code) == (422, 403)
    assert not Agent.objects.exclude(enforcement=None).exists()


def test_pages_read_the_mode_in_their_own_query(
    client: ApiClient, tenant: Tenant, django_assert_max_num_queries: Any
) -> None:
    for _ in range(5):
        make_agent(tenant)
    client.get("/v1/agents")

    with django_assert_max_num_queries(3):
        assert len(client.get("/v1/agents").json()["data"]) == 5


@pytest.mark.parametrize("mode", ["observe", "enforce", None])
def test_mode_takes_a_scope_of_its_own(api: ApiClient, tenant: Tenant, mode: str | None) -> None:
    agent = make_agent(tenant)
    observe(tenant)
    client = api.as_key(make_key(tenant, ["agents:write", "agents:read"]))

    answers = [
        client.patch(f"/v1/agents/{agent.id}", {"enforcement": mode}),
        client.post("/v1/agents", {"name": "bot", "model_hash": "x", "enforcement": mode}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert answers[0].json() == {"error": "This API key lacks the scope agents:enforcement"}


@pytest.mark.parametrize("mode", Enforcement)
def test_no_key_sets_an_agent_to_observe(client: ApiClient, tenant: Tenant, mode: Enforcement) -> None:
    agent = make_agent(tenant)
    if mode == Enforcement.OBSERVE:
        observe(tenant)

    answers = [
        client.patch(f"/v1/agents/{agent.id}", {"enforcement": "observe"}),
        client.post("/v1/agents", {"name": "bot", "model_hash": "x", "enforcement": "observe"}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert Agent.objects.get(id=agent.id).enforcement is None
    assert client.patch(f"/v1/agents/{agent.id}", {"enforcement": "enforce"}).status_code == 200
