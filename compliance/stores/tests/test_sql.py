"""Prepared statements of rows, and statements that are sent together."""

import threading
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connections

from agents.models import Agent
from auditlog.models import AuditEntry
from auditlog.vocabulary import ActorKind, ActorType, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.stores import sql
from compliance.tests.threads import somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from incidents.models import TimelineEntry
from incidents.vocabulary import EntryKind
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

PATIENCE_SECONDS = 60.0


def an_agent(tenant: Tenant, **fields: Any) -> Agent:
    moment = now()
    given = {"name": "büro-☃", "model_hash": "sha256:ab", "metadata": {"a": [1, None, "é"]}, **fields}
    return Agent(tenant_id=tenant.id, status_changed_at=moment, created_at=moment, updated_at=moment, **given)


def an_entry(**fields: Any) -> AuditEntry:
    given = {"tenant_id": new_id(), "event_type": AuditAction.AGENT_CREATED, "created_at": now(), **fields}
    return AuditEntry(actor_type=ActorType.SYSTEM, actor_kind=ActorKind.SYSTEM, actor_id="tests", **given)


def an_entry_of_an_incident(incident_id: UUID) -> TimelineEntry:
    given = {"kind": EntryKind.NOTE, "actor_kind": ActorKind.SYSTEM, "actor_id": "tests"}
    return TimelineEntry(incident_id=incident_id, at=now(), text="", **given)


def columns_of(row: Any) -> dict[str, Any]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


@pytest.mark.parametrize("metadata", [None, {}, {"permitted_actions": ["x"], "deep": {"n": 2**60}}])
def test_what_is_inserted_is_what_saving_would_write(metadata: Any) -> None:
    inserted = an_agent(make_tenant(), metadata=metadata)
    saved = Agent(**columns_of(inserted) | {"id": new_id()})

    sql.insert(inserted)
    saved.save()

    found = [columns_of(Agent.objects.get(id=row.id)) | {"id": None} for row in (inserted, saved)]
    assert found[0] == found[1]
    assert not inserted._state.adding


def test_update_writes_the_fields_that_are_named() -> None:
    agent = an_agent(make_tenant())
    sql.insert(agent)
    agent.status, agent.name = "active", "not written"

    sql.update(agent, "status")

    agent.refresh_from_db()
    assert (agent.status, agent.name) == ("active", "büro-☃")


def test_rows_read_together_are_as_the_orm_reads_them() -> None:
    tenant = make_tenant()
    agent = an_agent(tenant)
    sql.insert(agent)

    agents, tenants, nothing = sql.read_together(
        (Agent, "WHERE id = %s", [agent.id]),
        (Tenant, "WHERE id = %s", [tenant.id]),
        (AuditEntry, "WHERE id = %s", [new_id()]),
    )

    assert columns_of(agents[0]) == columns_of(Agent.objects.get(id=agent.id))
    assert agents[0].did == Agent.objects.get(id=agent.id).did
    assert (tenants[0].name, nothing) == (tenant.name, [])


def test_statements_of_a_pipeline_are_there_for_those_behind_them() -> None:
    entry = an_entry()

    with sql.pipelined():
        sql.insert(entry)
        found = sql.prepared("SELECT count(*) FROM auditlog_auditentry WHERE id = %s", [entry.id])
        sql.insert(an_entry(tenant_id=entry.tenant_id))

    assert found == [(1,)]
    assert AuditEntry.objects.filter(tenant_id=entry.tenant_id).count() == 2


def test_failure_within_a_pipeline_is_djangos_and_undoes_all() -> None:
    first, second = an_entry(), an_entry()

    def insert_them() -> None:
        with environments.atomic(), sql.pipelined():
            sql.insert(first)
            sql.insert(first)
            sql.insert(second)

    with pytest.raises(IntegrityError):
        insert_them()

    assert not AuditEntry.objects.filter(id__in=[first.id, second.id]).exists()


@pytest.mark.usefixtures("committed")
def test_what_the_commit_refuses_is_not_acknowledged() -> None:
    told = []

    def insert_orphan() -> None:
        with environments.atomic():
            environments.on_commit(lambda: told.append("committed"))
            with sql.pipelined():
                # An incident that is not there: the foreign key is looked at when the transaction ends.
                sql.insert(an_entry_of_an_incident(new_id()))

    with pytest.raises(IntegrityError):
        insert_orphan()

    assert told == []


@pytest.mark.usefixtures("committed")
def test_a_question_behind_a_lock_sees_what_its_holder_committed() -> None:
    tenant = make_tenant()
    entry = an_entry(tenant_id=tenant.id)
    found: list[Any] = []

    def wait_for_it() -> None:
        with environments.use(Environment.LIVE), environments.atomic():
            found.extend(
                sql.read_together(
                    (Tenant, "WHERE id = %s FOR NO KEY UPDATE", [tenant.id]),
                    (AuditEntry, "WHERE id = %s", [entry.id]),
                )
            )
        connections.close_all()

    waiter = threading.Thread(target=wait_for_it)
    with environments.atomic():
        Tenant.objects.select_for_update(no_key=True).get(id=tenant.id)
        waiter.start()
        assert eventually(somebody_waits_for_a_lock)
        sql.insert(entry)
    waiter.join(PATIENCE_SECONDS)

    assert [row.id for row in found[1]] == [entry.id]


def statement_of(pid: int) -> str:
    """What a connection was last asked, as the other database's connection sees it."""
    with environments.use(Environment.TEST):
        return str(sql.query("SELECT query FROM pg_stat_activity WHERE pid = %s", [pid])[0][0])


def pid_of_connection() -> int:
    return int(sql.query("SELECT pg_backend_pid()")[0][0])


@pytest.mark.usefixtures("committed")
def test_idle_connection_is_not_asked_whether_it_lives() -> None:
    pid, connection = pid_of_connection(), connections["default"]
    before = statement_of(pid)

    connection.close_if_unusable_or_obsolete()
    connection.close_if_health_check_failed()

    assert statement_of(pid) == before == "SELECT pg_backend_pid()"


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("ask", [lambda: sql.prepared("SELECT 1", []), Tenant.objects.count])
def test_connection_that_the_server_ended_is_replaced_before_its_next_use(ask: Any) -> None:
    pid = pid_of_connection()
    with environments.use(Environment.TEST):
        sql.query("SELECT pg_terminate_backend(%s, 5000)", [pid])

    connections["default"].close_if_unusable_or_obsolete()
    ask()

    assert pid_of_connection() != pid


@pytest.mark.usefixtures("committed")
def test_connection_that_failed_is_asked_in_earnest() -> None:
    connection = connections["default"]
    pid_of_connection()
    connection.errors_occurred = True

    connection.close_if_unusable_or_obsolete()

    assert not connection.errors_occurred
    assert connection.connection is not None


def test_streamed_rows_come_in_pieces_and_end_the_transaction_when_closed(committed: None) -> None:
    rows = sql.streamed("SELECT generate_series(1, %s)", [5], most=2)

    first = next(rows)
    was_open = environments.in_transaction()
    rows.close()

    assert (first, was_open, environments.in_transaction()) == ([(1,), (2,)], True, False)
    assert [len(some) for some in sql.streamed("SELECT generate_series(1, 5)", None, most=2)] == [2, 2, 1]
