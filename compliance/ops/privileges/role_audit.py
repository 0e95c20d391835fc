"""What the database role of DATABASE_URL may do beyond what the service needs."""

from typing import Final

from django.db import connections

from auditlog import guards
from compliance.core import environments
from compliance.ops.privileges.granting import SCHEMA, differences

REMEDY: Final = (
    "run the service as a role that owns nothing (DATABASE_URL) and migrate as the owner"
    " (DATABASE_OWNER_URL): docs/operations.md, Database roles; then manage.py migrate for each database"
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


def privileges_as_listed() -> str:
    """Return where privileges differ from the list; empty if nowhere, or if the role itself has an excess."""
    alias = environments.current().alias
    found = [] if excesses(alias) else differences(alias)
    more = f", and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return "; ".join(map(str, found[:MOST_NAMED])) + more


def audit_log_guarded() -> str:
    """Return what is wrong with the audit log's triggers; empty if nothing."""
    found = sorted(guards.not_in_force())
    return f"triggers of the audit log are missing or disabled: {', '.join(found)}" if found else ""
