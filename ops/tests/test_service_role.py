"""What PostgreSQL refuses to whoever has the service's DSN, in both databases, and how an excess is told."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import connections
from psycopg import errors

from auditlog import services as auditlog
from auditlog.vocabulary import SERVICE_TENANT_ID, Actor, AuditAction
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.tests.owner import execute_as_owner, owning, quoted_service_role
from ops.checks import check_owners, check_roles
from ops.doctor import Finding, examine
from ops.privileges import granting
from ops.privileges.role_audit import excesses

pytestmark = pytest.mark.skipif(
    not django_settings.DATABASE_OWNERS["default"], reason="the given databases have no owner of their own"
)

LOG = "auditlog_auditentry"
EVENTS = "events_behaviorevent"
TENANT = "tenant_id = '00000000-0000-7000-8000-000000000000'"
GUARD = "auditlog_refuse_change()"
BODY = "RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$"

REFUSED = [
    # Rows.
    f"UPDATE {LOG} SET description = 'x'",
    f"UPDATE {LOG} SET description = description WHERE false",
    f"DELETE FROM {LOG}",
    f"TRUNCATE {LOG}",
    f"TRUNCATE {LOG} RESTART IDENTITY CASCADE",
    f"SELECT id FROM {LOG} WHERE {TENANT} FOR UPDATE",
    f"SELECT id FROM {LOG} WHERE {TENANT} FOR KEY SHARE",
    f"INSERT INTO {LOG} SELECT * FROM {LOG} ON CONFLICT (id) DO UPDATE SET description = 'x'",
    f"MERGE INTO {LOG} l USING {LOG} o ON l.id = o.id AND l.tenant_id = o.tenant_id WHEN MATCHED THEN DELETE",
    f"WITH gone AS (DELETE FROM {LOG} RETURNING *) SELECT count(*) FROM gone",
    f"BEGIN; LOCK TABLE {LOG} IN ACCESS EXCLUSIVE MODE",
    f"UPDATE {EVENTS} SET risk_score = 0",
    f"UPDATE {EVENTS} SET id = '00000000-0000-7000-8000-000000000000'",
    f"DELETE FROM {EVENTS}",
    f"TRUNCATE {EVENTS}",
    f"INSERT INTO {EVENTS}_default SELECT * FROM {EVENTS}",
    f"DELETE FROM {EVENTS}_default",
    "UPDATE events_eventreview SET note = 'x'",
    "DELETE FROM events_eventreview",
    "DELETE FROM agents_agent",
    "DELETE FROM certificates_certificate",
    "UPDATE tenancy_tenant SET id = '00000000-0000-4000-8000-000000000000'",
    "TRUNCATE api_idempotencyrecord",
    "DELETE FROM django_migrations",
    # Triggers, rules and functions.
    f"ALTER TABLE {LOG} DISABLE TRIGGER ALL",
    f"ALTER TABLE {LOG} DISABLE TRIGGER auditlog_no_change",
    f"DROP TRIGGER auditlog_no_change ON {LOG}",
    f"DROP FUNCTION {GUARD} CASCADE",
    f"CREATE OR REPLACE FUNCTION {GUARD} {BODY}",
    f"ALTER FUNCTION {GUARD} RENAME TO other",
    f"CREATE TRIGGER first BEFORE UPDATE ON {LOG} FOR EACH ROW EXECUTE FUNCTION {GUARD}",
    f"CREATE RULE hide AS ON INSERT TO {LOG} DO INSTEAD NOTHING",
    f"CREATE POLICY hide ON {LOG} USING (false)",
    f"ALTER TABLE {LOG} ENABLE ROW LEVEL SECURITY",
    "SET session_replication_role = replica",
    "SELECT set_config('session_replication_role', 'replica', false)",
    "ALTER ROLE CURRENT_USER SET session_replication_role = replica",
    # Definitions.
    f"ALTER TABLE {LOG} RENAME TO other",
    f"ALTER TABLE {LOG} RENAME COLUMN description TO other",
    f"ALTER TABLE {LOG} ALTER COLUMN description TYPE varchar(1) USING 'x'",
    f"ALTER TABLE {LOG} ADD COLUMN other int",
    f"ALTER TABLE {LOG} DROP COLUMN description",
    f"ALTER TABLE {LOG} SET SCHEMA pg_catalog",
    f"ALTER TABLE {LOG} OWNER TO CURRENT_USER",
    f"DROP TABLE {LOG}",
    f"DROP TABLE {EVENTS} CASCADE",
    f"ALTER TABLE {EVENTS} DETACH PARTITION {EVENTS}_default",
    f"CREATE INDEX other ON {LOG} (actor_id)",
    f"COMMENT ON TABLE {LOG} IS 'x'",
    f"DO $$ BEGIN EXECUTE 'ALTER TABLE {LOG} DISABLE TRIGGER ALL'; END $$",
    f"DO $$ BEGIN DELETE FROM {LOG}; END $$",
    "UPDATE pg_trigger SET tgenabled = 'D'",
    "CREATE TABLE other (id int)",
    "CREATE TABLE other AS SELECT 1",
    "CREATE VIEW other AS SELECT 1",
    "CREATE SEQUENCE other",
    "CREATE TYPE other AS (a int)",
    "CREATE SCHEMA other",
    f"CREATE FUNCTION other() {BODY}",
    # Names that a function with its owner's privileges might look up.
    f"CREATE TEMPORARY TABLE {EVENTS} (id uuid)",
    f"CREATE FUNCTION pg_temp.other() {BODY}",
    "CREATE OR REPLACE FUNCTION events_first_id(moment timestamptz) RETURNS uuid LANGUAGE sql"
    " AS 'SELECT NULL::uuid'",
    "ALTER FUNCTION events_partition_drop(text, text) SET search_path = pg_temp",
    # Partitions of the last thirty days, and what is no partition.
    f"SELECT events_partition_drop('{EVENTS}_default', '')",
    f"SELECT count(events_partition_drop(relname, '')) FROM pg_class WHERE relname ~ '^{EVENTS}_2'",
    "SELECT events_first_id(now())",
    "SELECT events_partition_name(now(), now())",
    # A table that is filled to become a partition may be filled, and nothing else.
    *(
        f"BEGIN; SELECT events_partition_begin('2020-01-01', '2020-01-02'); {statement}"
        for statement in (
            f"SELECT * FROM {EVENTS}_20200101",
            f"DROP TABLE {EVENTS}_20200101",
            f"TRUNCATE {EVENTS}_20200101",
            f"UPDATE {EVENTS}_20200101 SET risk_score = 0",
            f"ALTER TABLE {EVENTS}_20200101 DROP id",
            f"SELECT events_partition_attach('2020-01-01', '2020-01-02');"
            f" INSERT INTO {EVENTS}_20200101 DEFAULT VALUES",
        )
    ),
    # The server's files and programs.
    "COPY (SELECT 1) TO PROGRAM 'true'",
    f"COPY {LOG} FROM PROGRAM 'true'",
    "COPY (SELECT 1) TO '/tmp/copied-by-the-service'",
    f"COPY {LOG} FROM '/etc/passwd'",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, '/tmp/copied-by-the-service')",
    "SELECT pg_read_file('PG_VERSION')",
    "SELECT pg_read_binary_file('PG_VERSION')",
    "SELECT pg_ls_dir('.')",
    "SELECT * FROM pg_authid",
    "ALTER SYSTEM SET fsync = off",
    "LOAD '/tmp/other.so'",
    "CREATE EXTENSION pg_stat_statements",
    "CREATE LANGUAGE other HANDLER plpgsql_call_handler",
    # Roles and privileges.
    "SET ROLE {owner}",
    "SET SESSION AUTHORIZATION {owner}",
    "SET ROLE pg_execute_server_program",
    "ALTER ROLE CURRENT_USER SUPERUSER",
    "ALTER ROLE CURRENT_USER CREATEROLE",
    "ALTER ROLE CURRENT_USER BYPASSRLS",
    "ALTER ROLE {owner} PASSWORD 'x'",
    "CREATE ROLE other",
    "DROP ROLE {owner}",
    "GRANT {owner} TO CURRENT_USER",
    "GRANT pg_write_all_data TO CURRENT_USER",
    "GRANT SET ON PARAMETER session_replication_role TO CURRENT_USER",
    "REASSIGN OWNED BY {owner} TO CURRENT_USER",
    "DROP OWNED BY {owner}",
    "ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT ALL ON TABLES TO PUBLIC",
    "CREATE DATABASE other",
    "CREATE PUBLICATION other",
    "CREATE EVENT TRIGGER other ON ddl_command_start EXECUTE FUNCTION auditlog_refuse_change()",
]
# PostgreSQL only warns of these; they change nothing.
WITHOUT_EFFECT = [
    f"GRANT ALL ON {LOG} TO CURRENT_USER",
    f"GRANT DELETE ON {LOG} TO PUBLIC",
    f"GRANT UPDATE ON {EVENTS} TO CURRENT_USER",
    "GRANT CREATE ON SCHEMA public TO CURRENT_USER",
    f"SET search_path = pg_temp, public; SELECT events_partition_drop('{LOG}', '')",
    f"SELECT events_partition_drop('public.{LOG}', '')",
    f"SELECT events_partition_drop('{EVENTS}; DROP TABLE {LOG}', '')",
    "SELECT events_partition_drop(NULL, NULL)",
]
_STATE = """
SELECT (SELECT md5(string_agg(e::text, ',' ORDER BY id)) FROM auditlog_auditentry e),
    (SELECT count(*) FROM events_behaviorevent),
    (SELECT md5(string_agg(t::text, ',' ORDER BY t.oid)) FROM pg_trigger t),
    (SELECT md5(string_agg(p::text, ',' ORDER BY p.oid)) FROM pg_proc p),
    (SELECT string_agg(concat(relname, relowner, relacl, relrowsecurity), ',' ORDER BY oid) FROM pg_class
        WHERE relnamespace = 'public'::regnamespace),
    (SELECT md5(string_agg(a::text, ',' ORDER BY attrelid, attnum)) FROM pg_attribute a
        WHERE attrelid = 'auditlog_auditentry'::regclass),
    (SELECT string_agg(r::text, ',' ORDER BY rolname) FROM pg_roles r),
    (SELECT count(*) FROM pg_namespace WHERE nspname !~ '^pg_')
"""


@pytest.fixture(params=list(Environment), ids=str)
def environment(request: pytest.FixtureRequest, committed: None) -> Iterator[Environment]:
    """Each of the two, with an audit entry and a partition of events."""
    with environments.use(request.param):
        if not sql.query(f"SELECT FROM {LOG} LIMIT 1"):
            with environments.atomic():
                auditlog.record(
                    tenant_id=SERVICE_TENANT_ID,
                    action=AuditAction.AGENT_CREATED,
                    actor=Actor.system("tests"),
                    now=now(),
                )
        yield request.param


def dsn(environment: Environment) -> dict[str, Any]:
    """How the service connects, as in DATABASE_URL."""
    known = connections[environment.alias].settings_dict
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    return {name: known[setting] for name, setting in names.items()}


def attempt(environment: Environment, statement: str) -> None:
    owner = django_settings.DATABASE_OWNERS[environment.alias]["USER"]
    with psycopg.connect(**dsn(environment), autocommit=True) as connection:
        connection.execute(statement.replace("{owner}", f'"{owner}"').encode())


def is_refused(environment: Environment, statement: str) -> bool:
    try:
        attempt(environment, statement)
    except errors.InsufficientPrivilege:
        return True
    return False


def test_what_postgresql_refuses_to_the_service(environment: Environment) -> None:
    before = sql.query(_STATE)

    accepted = [statement for statement in REFUSED if not is_refused(environment, statement)]
    warned_of = [statement for statement in WITHOUT_EFFECT if not is_refused(environment, statement)]

    assert accepted == []
    assert warned_of == WITHOUT_EFFECT
    assert sql.query(_STATE) == before


def test_service_appends_and_reads(environment: Environment) -> None:
    count = sql.query(f"SELECT count(*) FROM {LOG}")[0][0]

    columns = "tenant_id, event_type, actor_type, actor_kind, actor_id, metadata, created_at"
    attempt(
        environment,
        f"INSERT INTO {LOG} (id, {columns}) SELECT gen_random_uuid(), {columns} FROM {LOG} LIMIT 1",
    )

    assert sql.query(f"SELECT count(*) FROM {LOG}")[0][0] == count + 1


@pytest.mark.parametrize(
    "arguments",
    [
        "now() + interval '9 years', now() + interval '9 years 1 day'",
        "'1999-01-01', '1999-01-02'",
        "'2031-01-02', '2031-01-01'",
        "'2020-01-01', '2020-03-01'",
        "'2020-01-01 00:00:00.5', '2020-01-02'",
        "'-infinity', 'infinity'",
        "NULL, '2020-01-01'",
        "'2020-01-01', NULL",
    ],
)
@pytest.mark.parametrize("verb", ["make", "begin", "attach"])
def test_only_sensible_partitions_are_made(environment: Environment, verb: str, arguments: str) -> None:
    with pytest.raises(errors.InvalidParameterValue):
        attempt(environment, f"SELECT events_partition_{verb}({arguments})")


def test_role_of_the_suite_has_no_excess(environment: Environment) -> None:
    assert excesses(environment.alias) == []
    assert check_roles() == []
    assert check_owners() == []


@pytest.fixture
def granted(request: pytest.FixtureRequest, environment: Environment) -> Iterator[None]:
    """A privilege that the service should not have."""
    execute_as_owner(f"GRANT {request.param} TO {quoted_service_role()}")
    yield
    with owning():
        granting.grant(environment.alias)
    assert granting.differences(environment.alias) == []


def ids_of_check() -> set[str | None]:
    return {message.id for message in check_roles()}


@pytest.mark.parametrize(
    ("granted", "told"),
    [
        (f"UPDATE ON {LOG}", "change, delete or truncate audit entries"),
        (f"UPDATE (description) ON {LOG}", "change, delete or truncate audit entries"),
        (f"DELETE ON {LOG}", "change, delete or truncate audit entries"),
        (f"TRUNCATE ON {LOG}", "change, delete or truncate audit entries"),
        (f"TRIGGER ON {LOG}", "change, delete or truncate audit entries"),
        ("CREATE ON SCHEMA public", "create objects"),
    ],
    indirect=["granted"],
)
def test_excess_is_told(environment: Environment, granted: None, told: str) -> None:
    assert [excess for excess in excesses(environment.alias) if told in excess]
    assert "wiring.E002" in ids_of_check()
    role = finding(environment, "database role")
    assert not role.ok
    assert told in role.detail
    assert "DATABASE_OWNER_URL" in role.remedy


@pytest.mark.parametrize("granted", [f"UPDATE ON {EVENTS}", "DELETE ON agents_agent"], indirect=True)
def test_other_privileges_than_listed_are_told(environment: Environment, granted: None) -> None:
    assert ids_of_check() == {"wiring.E003"}
    assert not finding(environment, "privileges").ok


def test_service_as_the_owner_of_its_tables_is_told(environment: Environment) -> None:
    with owning():
        told = excesses(environment.alias)
        role = finding(environment, "database role")

    assert [excess for excess in told if "owns" in excess and "tables" in excess]
    assert not role.ok


def test_owner_that_is_the_services_role_is_told(settings: Any) -> None:
    owners = {alias: {"USER": database["USER"]} for alias, database in settings.DATABASES.items()}
    settings.DATABASE_OWNERS = owners

    assert [message.id for message in check_owners()] == ["wiring.E001", "wiring.E001"]


@pytest.mark.parametrize(
    ("undo", "redo"),
    [
        (
            f"ALTER TABLE {LOG} DISABLE TRIGGER auditlog_no_change",
            f"ALTER TABLE {LOG} ENABLE TRIGGER auditlog_no_change",
        ),
        (
            f"DROP TRIGGER auditlog_no_truncate ON {LOG}",
            f"CREATE TRIGGER auditlog_no_truncate BEFORE TRUNCATE ON {LOG}"
            f" FOR EACH STATEMENT EXECUTE FUNCTION {GUARD}",
        ),
    ],
)
def test_guards_that_are_not_in_force_are_told(environment: Environment, undo: str, redo: str) -> None:
    execute_as_owner(undo)
    try:
        found, guarded = ids_of_check(), finding(environment, "audit log")
    finally:
        execute_as_owner(redo)

    assert found == {"wiring.E004"}
    assert not guarded.ok
    assert "ENABLE ALWAYS TRIGGER" in guarded.remedy
    assert check_roles() == []


@pytest.mark.parametrize("table", ["auth_user", "people_person"])
def test_guards_of_people_that_are_not_in_force_are_told(environment: Environment, table: str) -> None:
    switched = f"ALTER TABLE {table} {{}} TRIGGER people_no_change"
    with environments.use(Environment.LIVE):
        execute_as_owner(switched.format("DISABLE"))
    try:
        found, guarded = ids_of_check(), finding(environment, "people")
    finally:
        with environments.use(Environment.LIVE):
            execute_as_owner(switched.format("ENABLE"))

    assert found == {"wiring.E005"}
    assert f"people_no_change ON {table}" in guarded.detail
    assert check_roles() == []


def test_database_that_does_not_answer_is_a_warning(settings: Any, committed: None) -> None:
    lost = connections["test"].copy()
    lost.settings_dict["PORT"] = "1"
    kept = connections["test"]
    connections["test"] = lost
    try:
        assert ids_of_check() == {"wiring.W001"}
    finally:
        connections["test"] = kept


def finding(environment: Environment, check: str) -> Finding:
    (found,) = examine(chosen=[environment], fix=False, now=now(), only={check})
    return found
