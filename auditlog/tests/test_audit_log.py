"""The audit log: what it answers, and that nothing in it can be changed."""

from collections.abc import Callable

import pytest
from django.db import InternalError, connection
from django.db.utils import DatabaseError

from auditlog import services
from auditlog.models import AuditEntry
from auditlog.vocabulary import Actor, ActorKind, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.stores.rows import AppendOnly
from compliance.tests.client import ApiClient
from tenancy.models import Tenant
from tenancy.tests.factories import make_key, make_tenant


def make_entry(
    tenant: Tenant, action: AuditAction = AuditAction.AGENT_CREATED, actor: Actor | None = None
) -> AuditEntry:
    return services.record(
        tenant_id=tenant.id,
        action=action,
        affected_id="x",
        description="d",
        metadata={"a": None},
        actor=actor or Actor(ActorKind.AGENT, "a1"),
        now=now(),
    )


@pytest.fixture
def tenant() -> Tenant:
    return make_tenant()


@pytest.fixture
def client(api: ApiClient, tenant: Tenant) -> ApiClient:
    return api.as_key(make_key(tenant))


def test_entry_has_the_specified_fields(client: ApiClient, tenant: Tenant) -> None:
    entry = make_entry(tenant)

    row = client.get("/v1/audit-log?event_type=agent.created").json()["data"][0]

    assert set(row) == {
        "id", "event_type", "actor_type", "actor_kind", "actor_id", "description", "affected_id", "metadata",
        "created_at",
    }  # fmt: skip
    assert (row["id"], row["actor_id"], row["metadata"]) == (str(entry.id), "a1", {"a": None})


def test_filters_narrow(client: ApiClient, tenant: Tenant) -> None:
    make_entry(tenant)
    make_entry(tenant, AuditAction.DELEGATION_ISSUED, Actor.system("s"))

    by_type = client.get("/v1/audit-log?event_type=delegation.issued").json()["data"]
    by_actor = client.get("/v1/audit-log?actor_type=agent").json()["data"]
    unknown = client.get("/v1/audit-log?event_type=never.heard").json()
    by_kind = client.get("/v1/audit-log?actor_kind=agent&actor_id=a1&affected_id=x").json()["data"]
    by_beginning = client.get("/v1/audit-log?action=delegation.").json()["data"]
    moment = by_type[0]["created_at"].replace("+", "%2B")
    later = client.get(f"/v1/audit-log?after={moment}").json()["data"]

    assert [row["event_type"] for row in by_type] == ["delegation.issued"]
    assert [row["event_type"] for row in by_actor] == ["agent.created"]
    assert unknown == {"data": [], "next_cursor": None}
    assert [row["event_type"] for row in by_kind] == ["agent.created"]
    assert by_beginning == by_type
    assert moment
    assert [row for row in later if row["event_type"] != "api_key.created"] == []


def test_pages_cover_all_without_repeats(client: ApiClient, tenant: Tenant) -> None:
    moment = now()
    for _ in range(5):
        services.record(
            tenant_id=tenant.id, action=AuditAction.AGENT_UPDATED, actor=Actor.system("s"), now=moment
        )
    seen: list[str] = []
    cursor = None

    while True:
        query = "&before=" + cursor if cursor else ""
        body = client.get(f"/v1/audit-log?event_type=agent.updated&limit=2{query}").json()
        seen += [row["id"] for row in body["data"]]
        cursor = body["next_cursor"]
        if cursor is None:
            break

    assert len(seen) == len(set(seen)) == 5


@pytest.mark.parametrize(
    "tamper",
    [
        lambda entry: entry.save(),
        lambda entry: entry.delete(),
        lambda entry: AuditEntry.objects.filter(id=entry.id).update(description="nothing happened"),
        lambda entry: AuditEntry.objects.filter(id=entry.id).delete(),
    ],
)
def test_models_refuse_changes(tenant: Tenant, tamper: Callable[[AuditEntry], object]) -> None:
    entry = make_entry(tenant)

    with pytest.raises((AppendOnly, RuntimeError)):
        tamper(entry)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE auditlog_auditentry SET description = 'x'",
        "DELETE FROM auditlog_auditentry",
        "TRUNCATE auditlog_auditentry",
    ],
)
def test_database_refuses_changes_even_to_the_owner(owned: None, tenant: Tenant, statement: str) -> None:
    make_entry(tenant)

    with (
        pytest.raises((DatabaseError, InternalError), match="append-only"),
        environments.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_entry_outside_a_transaction_is_refused(committed: None) -> None:
    with pytest.raises(RuntimeError, match="belongs inside"):
        services.record(
            tenant_id=new_id(), action=AuditAction.AGENT_CREATED, actor=Actor.system("s"), now=now()
        )
