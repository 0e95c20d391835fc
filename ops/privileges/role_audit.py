"""Privileges of the role of DATABASE_URL beyond what the service needs."""

from typing import Final

from django.conf import settings
from django.db import connections

from auditlog import guards
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql
from ops.privileges.granting import SCHEMA, differences

REMEDY: Final = (
    "run the service as a role that owns nothing (DATABASE_URL) and migrate as the owner"
    " (DATABASE_OWNER_URL): docs/operations.md, Database roles; then manage.py migrate for each database"
)
AUDITOR_REMEDY: Final = (
    "make the role of DATABASE_AUDITOR (docs/operations.md, Database roles), then manage.py migrate for each"
    " database; until then the console reads the audit log as the service"
)
PEOPLE_TRIGGERS: Final = {
    "people_identify ON auth_user",
    *(
        f"people_{what} ON {table}"
        for table in ("auth_user", "people_person")
        for what in ("no_change", "no_truncate")
    ),
}
"""Give every user an identity and keep both from deletion, in the live database alone, where users exist."""
PEOPLE_REMEDY: Final = (
    "find out who did it; then, as the owner: ALTER TABLE <table> ENABLE ALWAYS TRIGGER <trigger>;"
    " a missing one is made anew as in migration people.0001; give users made meanwhile their identity"
)
MOST_NAMED: Final = 3
# A member of these reads or writes whatever the privileges of tables say.
_PREDEFINED: Final = (
    *("pg_execute_server_program", "pg_read_server_files", "pg_write_server_files"),
    *("pg_write_all_data", "pg_read_all_data"),
)
_TABLES: Final = ", ".join(f"'{guards.PREFIX}{table}'" for table in guards.TABLES)
_EXCESSES: Final = {
    "may make roles": "rolcreaterole",
    "may make databases": "rolcreatedb",
    "may replicate": "rolreplication",
    "bypasses row security": "rolbypassrls",
    "owns tables, or is a member of their owner": f"""EXISTS (
        SELECT FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind IN ('r', 'p')
        AND pg_has_role(current_user, relowner, 'MEMBER'))""",
    **{f"is a member of {name}": f"pg_has_role(current_user, '{name}', 'MEMBER')" for name in _PREDEFINED},
    "may change, delete or truncate audit entries or their tree": f"""EXISTS (
        SELECT FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace AND relname IN ({_TABLES})
        AND (has_table_privilege(oid, 'UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
            OR has_any_column_privilege(oid, 'UPDATE, REFERENCES') AND relname <> '{guards.NOTES}'))""",
    "may create objects in the database": f"""has_schema_privilege('{SCHEMA}', 'CREATE')
        OR has_database_privilege(current_database(), 'CREATE')""",
    "may make temporary tables": "has_database_privilege(current_database(), 'TEMPORARY')",
    "may set session_replication_role, which switches triggers off":
        "has_parameter_privilege('session_replication_role', 'SET')",
}  # fmt: skip
_QUESTION: Final = (
    f"SELECT rolsuper, {', '.join(_EXCESSES.values())} FROM pg_roles WHERE rolname = current_user"  # noqa: S608
)

_AUDITOR: Final = """
SELECT NOT pg_has_role(current_user, oid, 'MEMBER'), rolcanlogin,
    rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls
        OR EXISTS (SELECT FROM pg_auth_members WHERE member = r.oid)
        OR EXISTS (SELECT FROM pg_shdepend WHERE refobjid = r.oid AND deptype = 'o')
FROM pg_roles r WHERE rolname = %s
"""
_AUDITORS_FAULTS: Final = (
    "is not granted to the service's role",
    "may sign in",
    "may do more than read, owns something, or is a member of another role",
)


def excesses(alias: str) -> list[str]:
    """Return what the role of DATABASE_URL may do and should not, in words."""
    with connections[alias].cursor() as cursor:
        cursor.execute(_QUESTION)
        ((is_superuser, *answers),) = cursor.fetchall()
    if is_superuser:
        return ["is a superuser: it can change and delete audit entries and run programs on the server"]
    return [words for words, is_so in zip(_EXCESSES, answers, strict=True) if is_so]


def role_is_limited() -> str:
    """Return what the role may do and should not in the current environment; empty if nothing."""
    found = excesses(environments.current().alias)
    return f"the service's role {', '.join(found)}" if found else ""


def auditor_is_in_use() -> str:
    """Return why the console does not read the audit log as a limited auditor; empty if it does."""
    role = settings.DATABASE_AUDITOR
    with connections[environments.current().alias].cursor() as cursor:
        cursor.execute(_AUDITOR, [role])
        found = cursor.fetchone()
    if found is None:
        return f"the auditor's role {role} does not exist"
    faults = [words for words, is_so in zip(_AUDITORS_FAULTS, found, strict=True) if is_so]
    return f"the auditor's role {role} {', '.join(faults)}" if faults else ""


def privileges_as_listed() -> str:
    """Return where privileges differ from the list; empty if nowhere, or if the role itself has an excess."""
    alias = environments.current().alias
    found = [] if excesses(alias) else differences(alias)
    more = f", and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return "; ".join(map(str, found[:MOST_NAMED])) + more


def audit_log_guarded() -> str:
    """Return what is wrong with the audit log's triggers; empty if nothing."""
    found = sorted(sql.triggers_not_in_force(guards.TRIGGERS))
    return f"triggers of the audit log are missing or disabled: {', '.join(found)}" if found else ""


def people_guarded() -> str:
    """Return what is wrong with the triggers on people's tables, in the live database; empty if nothing."""
    with environments.use(Environment.LIVE):
        found = sorted(sql.triggers_not_in_force(PEOPLE_TRIGGERS))
    return f"triggers on people's tables are missing or disabled: {', '.join(found)}" if found else ""
