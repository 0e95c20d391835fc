"""What is wrong with the database role that the service runs as."""

from dataclasses import dataclass
from typing import Any, Final

from django.db import connections

from auditlog import guards
from compliance.wiring import granting

REMEDY: Final = (
    "run the service as a role that owns nothing (DATABASE_URL) and migrate as the owner"
    " (DATABASE_OWNER_URL): docs/operations.md, Database roles; then manage.py migrate for each database"
)
TOLD: Final = 3
"""Differences of privileges that are named; the others are counted."""
# Predefined roles by which a member reads or writes past the privileges of tables.
_PREDEFINED: Final = [
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
    "pg_write_all_data",
    "pg_read_all_data",
]
_ATTRIBUTES: Final = """
SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
    (SELECT count(*) FROM pg_class WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('r', 'p')
        AND pg_has_role(current_user, relowner, 'MEMBER')),
    ARRAY(SELECT rolname::text FROM pg_roles
        WHERE rolname = ANY(%(predefined)s) AND pg_has_role(current_user, oid, 'MEMBER')),
    coalesce(has_table_privilege(to_regclass(%(log)s), 'UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
        OR has_any_column_privilege(to_regclass(%(log)s), 'UPDATE, REFERENCES'), false),
    has_schema_privilege(%(schema)s, 'CREATE') OR has_database_privilege(current_database(), 'CREATE'),
    has_database_privilege(current_database(), 'TEMPORARY'),
    has_parameter_privilege('session_replication_role', 'SET')
FROM pg_roles WHERE rolname = current_user
"""


@dataclass(frozen=True)
class _Role:
    """Attributes of the role that is connected, and what it may do."""

    is_superuser: bool
    makes_roles: bool
    makes_databases: bool
    replicates: bool
    bypasses_row_security: bool
    owned_tables: int
    predefined: list[str]
    changes_log: bool
    makes_objects: bool
    makes_temporary_tables: bool
    switches_triggers_off: bool

    def excesses(self) -> list[str]:
        """What it should not be or be able to do, in words."""
        if self.is_superuser:
            return ["is a superuser: it can change and delete audit entries and run programs on the server"]
        told = {
            "may make roles": self.makes_roles,
            "may make databases": self.makes_databases,
            "may replicate": self.replicates,
            "bypasses row security": self.bypasses_row_security,
            f"owns {self.owned_tables} tables, or is a member of their owner": self.owned_tables > 0,
            f"is a member of {', '.join(self.predefined)}": bool(self.predefined),
            "may change, delete or truncate audit entries": self.changes_log,
            "may create objects in the database": self.makes_objects,
            "may make temporary tables": self.makes_temporary_tables,
            "may set session_replication_role, which switches triggers off": self.switches_triggers_off,
        }
        return [words for words, is_so in told.items() if is_so]


def excesses(alias: str) -> list[str]:
    """What the role of DATABASE_URL may do and should not; empty where all is well."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            _ATTRIBUTES,
            {"schema": granting.SCHEMA, "log": guards.TABLE, "predefined": _PREDEFINED},
        )
        row: Any = cursor.fetchone()
    return _Role(*row).excesses()


def privileges_that_differ(alias: str) -> str:
    """The first differences from `privileges.py`, and how many more there are; empty where there are none."""
    found = granting.differences(alias)
    more = f", and {len(found) - TOLD} more" if len(found) > TOLD else ""
    return "; ".join(map(str, found[:TOLD])) + more
