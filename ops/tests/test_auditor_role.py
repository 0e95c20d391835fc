"""The auditor: what PostgreSQL refuses to the console's connections to the audit log, in both databases."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from psycopg import errors

from auditlog import services as auditlog
from auditlog.exporting.formats import FORMATS
from auditlog.models import AuditEntry
from auditlog.tests.factories import seal_and_sign
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.core.identifiers import new_id
from compliance.stores import sql
from compliance.tests.console import console_of, make_operator
from compliance.tests.owner import execute_as_owner, owning
from ops.checks import check_roles
from ops.privileges import granting
from ops.privileges.listed import NOTHING, READ, TABLES
from ops.privileges.role_audit import auditor_is_in_use
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant

pytestmark = pytest.mark.skipif(
    not django_settings.DATABASE_OWNERS["default"], reason="the given databases have no owner of their own"
)

AUDITOR = django_settings.DATABASE_AUDITOR
LOG = "auditlog_auditentry"
UNREADABLE = sorted(name for name, access in TABLES.items() if access.auditor == NOTHING)
REFUSED = [
    f"INSERT INTO {LOG} SELECT * FROM {LOG}",  # noqa: S608
    f"UPDATE {LOG} SET description = 'x'",  # noqa: S608
    f"DELETE FROM {LOG}",  # noqa: S608
    f"TRUNCATE {LOG}",
    f"SELECT id FROM {LOG} WHERE tenant_id = '00000000-0000-7000-8000-000000000000' FOR UPDATE",  # noqa: S608
    "UPDATE auditlog_signedhead SET note = 'x'",
    "DELETE FROM auditlog_pendingentry",
    "UPDATE tenancy_tenant SET enforcement = 'observe'",
    "SELECT auditlog_record('{}')",
    "SELECT auditlog_erase(gen_random_uuid(), ARRAY['metadata'], ''::bytea, '{}')",
    "SELECT auditlog_drop(now(), 0, '{}')",
    f"ALTER TABLE {LOG} DISABLE TRIGGER ALL",
    "CREATE TEMPORARY TABLE other (id int)",
    "COPY (SELECT 1) TO PROGRAM 'true'",
]


@pytest.fixture(params=list(Environment), ids=str)
def environment(request: pytest.FixtureRequest, committed: None) -> Iterator[Environment]:
    with environments.use(request.param):
        yield request.param


@pytest.fixture
def session(environment: Environment) -> Iterator[psycopg.Connection[Any]]:
    """A connection as the auditor, which an attacker has made writable."""
    with environments.auditing():
        connection = sql.connected().connection
        connection.execute("SET default_transaction_read_only = off")
        yield connection
        sql.connected().close()


def test_every_other_statement_is_refused(session: psycopg.Connection[Any]) -> None:
    there = {name for (name,) in session.execute("SELECT relname::text FROM pg_class")}
    hidden = [f"SELECT FROM {name}" for name in UNREADABLE if name in there]

    allowed = []
    for statement in (*REFUSED, *hidden):
        with suppress(errors.InsufficientPrivilege):
            session.execute(statement.encode())
            allowed.append(statement)

    assert allowed == []
    assert len(hidden) > 25


def test_its_connections_are_read_only_and_the_services_stay_its_own(environment: Environment) -> None:
    question = "SELECT current_user::text, current_setting('transaction_read_only')"
    service = connections[environment.alias].settings_dict["USER"]

    with environments.auditing():
        as_auditor = sql.query(question)

    assert as_auditor == [(AUDITOR, "on")]
    assert sql.query(question) == [(service, "off")]


def test_it_may_read_the_tables_listed_for_it(environment: Environment) -> None:
    with environments.auditing():
        for table in sorted(name for name, access in TABLES.items() if access.auditor == READ):
            sql.query(f"SELECT * FROM {table} LIMIT 1")  # noqa: S608


RECORDS = 'INSERT INTO "auditlog_auditentry" '
QUEUES = "SELECT auditlog_queue(%s::uuid[])"


@pytest.fixture
def tenant(environment: Environment) -> Tenant:
    return make_tenant("Audited")


@pytest.fixture
def entry(tenant: Tenant) -> AuditEntry:
    with environments.atomic():
        made = auditlog.record(
            tenant_id=tenant.id,
            action=AuditAction.AGENT_UPDATED,
            description="Renamed",
            actor=Actor.system("tests"),
            now=now(),
        )
    seal_and_sign()
    return made


def pages(entry: AuditEntry) -> list[str]:
    entries, tree = "admin:auditlog_auditentry", "admin:auditlog_treehead_changelist"
    listed = reverse(f"{entries}_changelist")
    return [
        listed,
        f"{listed}?q=Renamed&tenant={entry.tenant_id}&created_at__year={entry.created_at.year}",
        *(reverse(f"{entries}_{page}", args=[entry.pk]) for page in ("change", "proof", "verify")),
        *(f"{reverse(f'{entries}_export', args=[name])}?tenant={entry.tenant_id}" for name in FORMATS),
        reverse(tree),
    ]


def test_the_pages_of_the_audit_log_are_read_through_it(environment: Environment, entry: AuditEntry) -> None:
    client = console_of(make_operator(f"reader {new_id()}"), environment)

    for page in pages(entry):
        with (
            CaptureQueriesContext(connections[environment.alias]) as as_service,
            CaptureQueriesContext(connections[environment.auditor_alias]) as as_auditor,
        ):
            answer = client.get(page)
            body = answer.getvalue()

        assert answer.status_code == 200, page
        assert body
        assert as_auditor.captured_queries, page
        asked = (one["sql"] for one in as_service.captured_queries)
        touched = [statement for statement in asked if "auditlog_" in statement and statement != QUEUES]
        is_download = "export" in page or "proof" in page
        recorded = [statement for statement in touched if statement.startswith(RECORDS)]
        assert touched == recorded, page
        assert len(recorded) <= is_download, page


def test_without_the_role_the_pages_work_and_the_lack_is_told(
    environment: Environment, entry: AuditEntry, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.DATABASE_AUDITOR = "nobody_made_this"
    options = connections[environment.auditor_alias].settings_dict["OPTIONS"]
    client = console_of(make_operator(f"reader {new_id()}"), environment)
    connections[environment.auditor_alias].close()

    options["assume_role"] = settings.DATABASE_AUDITOR
    try:
        shown = [bool(client.get(page).getvalue()) for page in pages(entry)]
        told = auditor_is_in_use()
    finally:
        options["assume_role"] = AUDITOR
        connections[environment.auditor_alias].close()

    assert all(shown)
    assert "nobody_made_this does not exist" in told
    assert "wiring.W002" in {message.id for message in check_roles()}
    assert "nobody_made_this cannot be assumed" in caplog.text


def test_a_role_without_its_privileges_yet_is_not_assumed(environment: Environment) -> None:
    connections[environment.auditor_alias].close()
    execute_as_owner(f'REVOKE USAGE ON SCHEMA public FROM "{AUDITOR}"')
    try:
        with environments.auditing():
            ((user,),) = sql.query("SELECT current_user::text")
    finally:
        connections[environment.auditor_alias].close()
        with owning():
            granting.grant(environment.alias)

    assert user == connections[environment.alias].settings_dict["USER"]


def test_more_than_it_needs_is_told_and_taken_away(environment: Environment) -> None:
    execute_as_owner(f'GRANT SELECT ON events_behaviorevent TO "{AUDITOR}"')

    told = [str(each) for each in granting.differences(environment.alias)]
    with owning():
        granting.grant(environment.alias)

    assert told == [f"{AUDITOR} has SELECT on events_behaviorevent instead of nothing"]
    assert granting.differences(environment.alias) == []
    assert auditor_is_in_use() == ""


def test_its_connections_are_not_migrated(environment: Environment) -> None:
    with pytest.raises(CommandError, match="default_auditor"):
        call_command("migrate", database="default_auditor")
