"""Citus, spoken to as one PostgreSQL: what the service does over a coordinator and two workers."""

import io
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import connections

from agents.models import Agent
from agents.tests.factories import make_agent
from auditlog.models import AuditEntry
from auditlog.tests.factories import seal_and_sign
from auditlog.tests.logs import verify
from auditlog.verifying.findings import LogOutcome
from auditlog.vocabulary import Actor, AuditAction
from certificates.public import verification
from certificates.tests.factories import make_authorities, make_certified_agent, revoke_certificate
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.localdev.servers.databases import ensure_assumable_role, ensure_role, query
from compliance.localdev.servers.postgres import DatabaseRole
from compliance.outbound.http_client import Outcome
from compliance.stores import sql
from compliance.stores.database_owner import as_owner
from events import partitions
from events.ingest.event_input import EventInput
from events.ingest.ingestion import Submission, ingest_all
from events.ingest.storage import ScoredEvent
from events.models import BehaviorEvent
from ops.checks import check_distribution
from ops.distribution.placements import DISTRIBUTED, MANAGED, REFERENCE
from tenancy.tests.factories import make_tenant
from webhooks.models import Delivery
from webhooks.tests.factories import make_webhook
from webhooks.tests.steps import claim, settle

from .cluster.citus import BUILD, CitusCluster, citus_build

pytestmark = [
    pytest.mark.drill,
    pytest.mark.long,
    pytest.mark.skipif(citus_build() is None, reason=f"{BUILD} names no build of Citus"),
    pytest.mark.usefixtures("committed", "cluster"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

NAME = "on_citus"


def role_of(credentials: dict[str, Any]) -> DatabaseRole:
    return DatabaseRole(credentials["USER"], credentials["PASSWORD"])


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CitusCluster]:
    owner, service = django_settings.DATABASE_OWNERS["default"], django_settings.DATABASES["default"]
    roles = [role_of(owner), role_of(service)]
    cluster = CitusCluster(
        Path(tmp_path_factory.mktemp("citus")) / "nodes", citus_build() or Path(), "of-the-test", roles
    )
    try:
        cluster.start()
        for node in cluster.nodes:
            admin = node.url("postgres")
            ensure_role(admin, roles[0], attributes="CREATEDB")
            ensure_role(admin, roles[1])
            ensure_assumable_role(admin, django_settings.DATABASE_AUDITOR, by=roles[1])
        cluster.make_database(NAME, owner=roles[0])
        yield cluster
    finally:
        cluster.clear()


@pytest.fixture(scope="module")
def cluster(started: CitusCluster, django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """The live database is the coordinator's, migrated and distributed."""
    aliases = ("default", Environment.LIVE.auditor_alias)
    port = started.coordinator.port()
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        for alias in aliases:
            found = connections.databases[alias]
            session = found["OPTIONS"]["options"].replace("force_generic_plan", "auto")
            changed = {"NAME": NAME, "PORT": port, "OPTIONS": {**found["OPTIONS"], "options": session}}
            connections[alias].close()
            patch.setattr(connections[alias], "settings_dict", connections[alias].settings_dict | changed)
            for name, value in changed.items():
                patch.setitem(found, name, value)
        patch.setitem(django_settings.DATABASE_OWNERS["default"], "PORT", port)
        patch.setattr(django_settings, "DATABASE_CITUS", True)
        with as_owner("default"):
            call_command("migrate", database="default", verbosity=0)
            call_command("distribute", database="default", verbosity=0)
        with environments.use(Environment.LIVE):
            make_authorities()
        yield
        for alias in aliases:
            connections[alias].close()


def submission(agent: Agent, **event: Any) -> Submission:
    given = EventInput(**{"agent_id": str(agent.id), "action_type": "api_call", **event})
    return Submission(agent.tenant_id, given, now())


def test_tables_lie_where_the_list_says_and_a_second_run_finds_nothing_to_do() -> None:
    told = io.StringIO()

    call_command("distribute", database="default", stdout=told)

    found = sql.query(
        "SELECT logicalrelid::regclass::text, partmethod::text, colocationid FROM pg_dist_partition p"
        " JOIN pg_class c ON c.oid = p.logicalrelid WHERE NOT c.relispartition"
    )
    divided = {table: together for table, method, together in found if method == "h"}
    assert set(divided) == set(DISTRIBUTED)
    assert len(set(divided.values())) == 1
    assert {table for table, method, _ in found if method == "n"} == {*REFERENCE, *MANAGED}
    assert told.getvalue() == ""
    assert [one.msg for one in check_distribution() if "live" in one.msg] == []


def test_functions_are_nobodys_at_workers(started: CitusCluster) -> None:
    open_to_all = (
        "SELECT proname FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) granted"
        " WHERE pronamespace = 'public'::regnamespace AND grantee = 0"
    )
    roles = (role_of(django_settings.DATABASE_OWNERS["default"]),)

    for worker in started.worker_nodes:
        assert query(worker.url(NAME, *roles), open_to_all) == []


def test_events_of_several_tenants_are_stored_together_and_rejected_alone() -> None:
    agents = [make_certified_agent(make_tenant()) for _ in range(6)]
    high = {"action_type": "transaction_anomaly", "details": {"severity": "critical", "amount": 9e6}}
    given = [submission(agent, **event) for agent in agents for event in ({}, {}, high)]
    rejected = submission(agents[0], details={"text": "\0"})

    *stored, refused = ingest_all([*given, rejected])

    assert all(isinstance(row, ScoredEvent) for row in stored)
    assert getattr(refused, "status", None) == 400
    for agent in agents:
        assert BehaviorEvent.objects.for_tenant(agent.tenant_id).of_agent(agent.id).count() == 3
        agent.refresh_from_db()
        assert agent.risk_score > 0.5


def test_agent_of_another_tenant_is_not_found() -> None:
    agent, other = make_certified_agent(make_tenant()), make_certified_agent(make_tenant())
    foreign = Submission(other.tenant_id, EventInput(agent_id=str(agent.id), action_type="api_call"), now())

    refused, stored = ingest_all([foreign, submission(agent)])

    assert getattr(refused, "status", None) == 404
    assert isinstance(stored, ScoredEvent)


def test_certificates_are_verified_by_serial_number_until_they_are_revoked() -> None:
    found = [make_certified_agent(make_tenant()).certificates.get() for _ in range(4)]
    revoke_certificate(found[0])

    answers = [verification.verify(serial=one.serial_number, now=now()).status for one in found]

    assert answers == ["revoked", "active", "active", "active"]


def test_commit_of_an_agent_and_its_audit_entry_has_two_phases() -> None:
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


def test_transaction_that_only_reads_commits() -> None:
    agent = make_certified_agent(make_tenant())

    with environments.snapshot(timeout_seconds=5):
        assert Agent.objects.for_tenant(agent.tenant_id).count() == 1

    assert Agent.objects.for_tenant(agent.tenant_id).count() == 1


def test_deliveries_of_several_tenants_are_claimed_and_recorded() -> None:
    agents = [make_certified_agent(make_tenant()) for _ in range(3)]
    for agent in agents:
        make_webhook(agent.tenant)
        revoke_certificate(agent.certificates.get())

    claimed = claim(now())
    settled = [settle(one, Outcome(one.started_at - one.started_at, 200, "ok"), now()) for one in claimed]

    assert {one.tenant_id for one in claimed} >= {agent.tenant_id for agent in agents}
    assert all(settled)
    for agent in agents:
        assert Delivery.objects.filter(tenant=agent.tenant).exclude(status="succeeded").count() == 0


def test_partitions_are_made_archived_and_dropped() -> None:
    actor, past = Actor.system("tests"), now() - timedelta(days=django_settings.EVENT_RETENTION_DAYS + 200)
    made = partitions.maintain(actor=actor, now=past).made

    dropped = partitions.maintain(actor=actor, now=now()).dropped

    assert {one.name for one in made} & {one.name for one in dropped}
    assert AuditEntry.objects.of_type(AuditAction.EVENTS_DROPPED).count() == len(dropped)
    assert partitions.default_rows() == 0


def test_audit_log_is_sealed_and_verified() -> None:
    tenant = make_tenant()
    make_agent(tenant)
    seal_and_sign()

    assert AuditEntry.objects.for_tenant(tenant.id).of_type(AuditAction.AGENT_CREATED).count() == 1
    assert verify().outcome is LogOutcome.VERIFIED
