"""Who answers for an agent: set, shown, listed, replaced, and required to certify."""

from typing import Any

import pytest
from django.db import IntegrityError

from agents.models import Agent
from agents.tests.factories import make_agent, make_retired_agent
from auditlog.models import AuditEntry
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.tests.client import ApiClient
from tenancy import services as tenancy
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

NEW = {"name": "bot", "model_hash": "sha256:ab"}
KIM = {"name": "Kim Berg", "email": "Kim.Berg@example.com"}
LEE = {"name": "Lee Sand", "email": "lee@example.com"}
OWNED = {"owner_name": KIM["name"], "owner_email": KIM["email"]}


def replace(client: ApiClient, gone: str = "KIM.berg@example.com") -> Any:
    return client.post("/v1/owners/replace", {"from": gone, "to": LEE})


def test_owners_are_set_changed_and_removed(client: ApiClient) -> None:
    made = client.post("/v1/agents", {**NEW, "owner": KIM, "backup_owner": LEE}).json()["data"]
    path = f"/v1/agents/{made['id']}"
    edited = client.patch(path, {"owner": LEE, "backup_owner": None})

    assert (made["owner"], made["backup_owner"]) == (KIM, LEE)
    assert edited.status_code == 200
    assert edited.json()["data"]["renewal_needed_for"] == []
    shown = client.get(path).json()["data"]
    assert (shown["owner"], shown["backup_owner"]) == (LEE, None)
    assert client.patch(path, {"owner": None}).json()["data"]["owner"] is None


def test_the_log_names_owners_only_where_they_can_be_erased(client: ApiClient) -> None:
    made = client.post("/v1/agents", {**NEW, "owner": KIM}).json()["data"]
    client.patch(f"/v1/agents/{made['id']}", {"owner": LEE})

    created, updated = AuditEntry.objects.about(made["id"]).order_by("created_at", "id")
    assert (created.metadata or {})["owner"] == KIM
    assert (updated.metadata or {})["owner"] == {"before": KIM, "after": LEE}
    assert (updated.metadata or {})["changed"] == ["owner_email", "owner_name"]
    for entry in (created, updated):
        assert "@" not in f"{entry.description} {entry.actor_id} {entry.affected_id}"


@pytest.mark.parametrize(
    "owner",
    [{"name": "Kim"}, {**KIM, "email": "kim"}, {**KIM, "email": f"{KIM['email']}\nBcc: lee@example.com"}],
)
def test_what_is_no_person_is_400(client: ApiClient, tenant: Tenant, owner: object) -> None:
    agent = make_agent(tenant)

    for answer in (
        client.post("/v1/agents", {**NEW, "owner": owner}),
        client.patch(f"/v1/agents/{agent.id}", {"backup_owner": owner}),
        client.post("/v1/owners/replace", {"from": KIM["email"], "to": owner}),
    ):
        assert (answer.status_code, list(answer.json())) == (400, ["error"])


def test_half_an_owner_is_not_stored(tenant: Tenant) -> None:
    agent = make_agent(tenant)

    with pytest.raises(IntegrityError), environments.atomic():
        Agent.objects.filter(id=agent.id).update(owner_name="Kim")


def test_agents_are_listed_by_owner_and_without_one(client: ApiClient, tenant: Tenant) -> None:
    owned, orphan = make_agent(tenant, **OWNED), make_agent(tenant)
    retired = make_retired_agent(tenant)
    make_agent(make_tenant("Other"), **OWNED)

    def listed(query: str) -> list[str]:
        return [row["id"] for row in client.get(f"/v1/agents?{query}").json()["data"]]

    assert listed("owner=kim.berg@EXAMPLE.com") == [str(owned.id)]
    assert listed("owner=lee@example.com") == []
    assert listed("orphaned=true") == [str(orphan.id)]
    assert listed("orphaned=false") == [str(retired.id), str(owned.id)]


def test_who_leaves_is_replaced_everywhere(client: ApiClient, tenant: Tenant) -> None:
    backup = {"backup_owner_name": KIM["name"], "backup_owner_email": KIM["email"].lower()}
    first, second = make_agent(tenant, **OWNED), make_retired_agent(tenant, **OWNED, **backup)
    third, foreign = make_agent(tenant), make_agent(make_tenant("Other"), **OWNED)
    with environments.use(Environment.TEST):
        sandboxed = make_agent(tenancy.get_tenant(tenant_id=tenant.id), **OWNED)

    answer = replace(client)

    assert (answer.status_code, answer.json()) == (200, {"data": {"agents": 2}})
    assert replace(client).json() == {"data": {"agents": 0}}
    for agent in (first, second, third, foreign):
        agent.refresh_from_db()
    with environments.use(Environment.TEST):
        sandboxed.refresh_from_db()
    assert (first.owner, first.backup_owner) == (LEE, None)
    assert (second.owner, second.backup_owner) == (LEE, LEE)
    assert third.owner is None
    assert foreign.owner == sandboxed.owner == KIM
    told = AuditEntry.objects.about(second.id).of_type("agent.updated").get()
    assert set((told.metadata or {})["changed"]) == {"owner", "backup_owner"}
    assert (told.metadata or {})["owner"] == {"before": KIM, "after": LEE}
    assert "@" not in str(told.description)
