"""On Citus, events are stored and agents read where the tenants' rows are."""

import os
from uuid import UUID

import psycopg
import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from agents.models import Agent
from certificates.tests.factories import make_certified_agent
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.identifiers import new_id
from compliance.stores import sql
from compliance.stores.postgresql import tenant_nodes
from compliance.tenancy.tests.factories import make_tenant
from events.ingest import standing
from events.ingest.event_input import EventInput
from events.ingest.ingestion import Submission, ingest_all
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent

on_citus = pytest.mark.skipif(os.environ.get("TEST_DATABASE") != "citus", reason="needs Citus")


def submission(agent: Agent, *, tenant_id: UUID | None = None) -> Submission:
    event = EventInput(agent_id=str(agent.id), action_type="api_call")
    return Submission(tenant_id or agent.tenant_id, event, now())


def standings(*agents: Agent) -> dict[str, bool]:
    wanted = {(agent.tenant_id, str(agent.id)) for agent in agents}
    return {name: one.may_report for name, one in standing.of_agents(wanted, now=now()).items()}


def end_sessions_of_nodes() -> None:
    """End the service's other sessions at each worker."""
    nodes = sql.query("SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0")
    given = connections["default"].get_connection_params()
    for host, port in nodes:
        wanted = {name: given[name] for name in ("dbname", "user", "password")}
        with psycopg.connect(**wanted, host=host, port=port, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
                " WHERE usename = current_user AND datname = current_database() AND pid <> pg_backend_pid()"
            )


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

    end_sessions_of_nodes()

    stored = ingest_all([submission(agent) for agent in agents])
    assert all(isinstance(row, ScoredEvent) for row in stored)


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
