"""On Citus, events are stored and agents read where the tenants' rows are."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID

import pytest
from django.db import ProgrammingError, connections
from pytest_django.fixtures import Settings

from agents.models import Agent
from agents.tests.factories import make_agent
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.stores import sql
from compliance.stores.postgresql import tenant_nodes
from compliance.tenancy.tests.factories import make_tenant
from compliance.tests.citus import on_citus
from compliance.tests.owner import end_sessions_at_workers, workers_as_owner
from compliance.tests.threads import in_thread, somebody_waits_for_a_lock
from compliance.tests.waiting import eventually
from events.ingest import standing
from events.ingest.event_input import EventInput
from events.ingest.ingestion import Submission, ingest_all
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent

SHARD = "SELECT get_shard_id_for_distribution_column('agents_agent', %s)"


def submission(agent: Agent, *, tenant_id: UUID | None = None) -> Submission:
    event = EventInput(agent_id=str(agent.id), action_type="api_call")
    return Submission(tenant_id or agent.tenant_id, event, now())


def standings(*agents: Agent) -> dict[str, bool]:
    wanted = {(agent.tenant_id, str(agent.id)) for agent in agents}
    return {name: one.may_report for name, one in standing.of_agents(wanted, now=now()).items()}


def test_all_tenants_are_one_group_without_citus(committed: None, settings: Settings) -> None:
    settings.DATABASE_CITUS = False

    assert tenant_nodes.divided(["one", "other"]) == [["one", "other"]]


def test_all_tenants_are_one_group_in_a_transaction(db: None, settings: Settings) -> None:
    settings.DATABASE_CITUS = True

    with environments.atomic():
        assert tenant_nodes.divided(["one", "other"]) == [["one", "other"]]


@on_citus
def test_groups_are_those_of_nodes(committed: None) -> None:
    tenants = [str(make_tenant().id) for _ in range(12)]

    groups = tenant_nodes.divided(tenants)

    assert len(groups) == 2
    assert sorted(tenant for group in groups for tenant in group) == sorted(tenants)


@on_citus
def test_events_of_tenants_on_several_nodes_are_stored(committed: None) -> None:
    agents = [make_certified_agent(make_tenant()) for _ in range(8)]

    stored = ingest_all([submission(agent) for agent in agents for _ in range(3)])

    assert all(isinstance(row, ScoredEvent) for row in stored)
    for agent in agents:
        assert BehaviorEvent.objects.for_tenant(agent.tenant_id).of_agent(agent.id).count() == 3


@on_citus
def test_standing_is_that_of_the_moment(committed: None) -> None:
    agents = [make_certified_agent(make_tenant()) for _ in range(4)]
    assert set(standings(*agents).values()) == {True}

    Agent.objects.for_tenant(agents[0].tenant_id).filter(id=agents[0].id).update(status="suspended")

    assert standings(*agents) == {str(agent.id): agent is not agents[0] for agent in agents}


@on_citus
def test_nodes_that_ended_their_sessions_are_asked_again(committed: None) -> None:
    agents = [make_certified_agent(make_tenant()) for _ in range(8)]
    ingest_all([submission(agent) for agent in agents])

    end_sessions_at_workers()

    stored = ingest_all([submission(agent) for agent in agents])
    assert all(isinstance(row, ScoredEvent) for row in stored)


@contextmanager
def blocked(tenant_id: UUID) -> Iterator[None]:
    """Block writes to the tenant's shard at the nodes, as a move does."""
    ((shard,),) = sql.query(SHARD, [tenant_id])
    with workers_as_owner() as workers:
        for worker in workers:
            worker.execute("SELECT lock_shard_metadata(7, ARRAY[%s::bigint])", [shard])
        yield


@on_citus
def test_events_wait_while_their_shard_moves(committed: None) -> None:
    agent = make_certified_agent(make_tenant())
    ingest_all([submission(agent)])
    stored = BehaviorEvent.objects.for_tenant(agent.tenant_id)

    with ThreadPoolExecutor(1) as pool:
        with blocked(agent.tenant_id):
            later = pool.submit(in_thread, lambda: ingest_all([submission(agent)]))
            assert eventually(somebody_waits_for_a_lock)
            assert stored.count() == 1

        assert isinstance(later.result(20)[0], ScoredEvent)
    assert stored.count() == 2


@on_citus
def test_service_alone_may_hold_shards(committed: None) -> None:
    service = connections["default"].settings_dict["USER"]
    with workers_as_owner() as workers:
        for worker in workers:
            rows = worker.execute(
                "SELECT coalesce(rolname, 'PUBLIC') FROM pg_proc, aclexplode(proacl) AS granted"
                " LEFT JOIN pg_roles ON pg_roles.oid = grantee"
                " WHERE proname = 'tenancy_hold_shard' AND grantee <> proowner"
            )
            assert rows.fetchall() == [(service,)]


@on_citus
def test_shard_that_is_elsewhere_is_not_written(committed: None) -> None:
    agent = make_certified_agent(make_tenant())
    ((shard,),) = sql.query(SHARD, [agent.tenant_id])

    with pytest.raises(ProgrammingError, match=f"shard {shard} is not on this node"):
        sql.query("SELECT tenancy_hold_shard(%s)", [shard])


@on_citus
def test_agent_of_another_tenant_is_not_found(committed: None) -> None:
    agent, other = make_certified_agent(make_tenant()), make_certified_agent(make_tenant())

    refused, stored = ingest_all([submission(agent, tenant_id=other.tenant_id), submission(agent)])

    assert getattr(refused, "status", None) == 404
    assert isinstance(stored, ScoredEvent)


@on_citus
def test_rows_that_the_shard_lacks_are_asked_of_the_coordinator(committed: None) -> None:
    agent = make_certified_agent(make_tenant())
    tenant_id, unknown = str(agent.tenant_id), str(new_id())
    query = tenant_nodes.TenantQuery(
        "SELECT agent.id::text FROM agents_agent AS agent",
        ids="agent.id",
        tenants="agent.tenant_id",
        tables=["agents_agent"],
    )

    found = tenant_nodes.read(query, {tenant_id: [str(agent.id), unknown]}, first=[])

    assert [row[0] for row in found] == [str(agent.id)]
    assert sql.prepared(query.routed, [sql.array([agent.id]), tenant_id])[0][0] == str(agent.id)


@on_citus
def test_commit_of_an_agent_and_its_audit_entry_has_two_phases(committed: None) -> None:
    """Else the agent may stand without its entry, and its idempotency key without a record."""
    tenant, told = make_tenant(), []
    connection = connections["default"]
    with environments.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL citus.log_remote_commands = on")
        cursor.execute("SET LOCAL client_min_messages = notice")
        connection.connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        make_agent(tenant)

    phases = [text.split("'")[0] for text in told if "PREPARE" in text]
    assert phases == ["issuing PREPARE TRANSACTION ", "issuing COMMIT PREPARED "]


@on_citus
def test_transaction_that_only_reads_commits(committed: None) -> None:
    agent = make_certified_agent(make_tenant())

    with environments.snapshot(timeout_seconds=5):
        assert Agent.objects.for_tenant(agent.tenant_id).count() == 1

    assert Agent.objects.for_tenant(agent.tenant_id).count() == 1
