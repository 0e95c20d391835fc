"""Comparison of a database's privileges with the list, and the statements that correct them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import connections
from psycopg import sql as psql

from compliance.stores import sql
from ops.privileges.listed import FUNCTIONS, NOTHING, TABLES

SCHEMA: Final = "public"
PUBLIC: Final = ""
"""The grantee PUBLIC: every role. No role has an empty name."""
SERVICE, READER, AUDITOR = "service", "reader", "auditor"

# Without what belongs to an extension.
_RELATIONS: Final = """
SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.relname::text, coalesce(
    (SELECT p.relname::text FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
     WHERE i.inhrelid = c.oid AND c.relispartition), '')
FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
AND NOT EXISTS (SELECT FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
UNION ALL
SELECT 'FUNCTION', p.oid::regprocedure::text, '' FROM pg_proc p
WHERE p.pronamespace = 'public'::regnamespace
AND NOT EXISTS (SELECT FROM pg_depend d
    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
ORDER BY 1, 2
"""
_GRANTED: Final = """
SELECT kind, name, coalesce(role.rolname::text, ''), array_agg(privilege) FROM (
    SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, c.relname::text AS name,
        c.relowner AS owner, a.grantee, a.privilege_type AS privilege
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    UNION ALL
    SELECT 'TABLE', c.relname::text, c.relowner, a.grantee, format('%%s (%%s)', a.privilege_type, t.attname)
    FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid, aclexplode(t.attacl) a
    WHERE c.relnamespace = 'public'::regnamespace AND NOT t.attisdropped
    UNION ALL
    SELECT 'FUNCTION', p.oid::regprocedure::text, p.proowner, a.grantee, a.privilege_type
    FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    WHERE p.pronamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'SCHEMA', n.nspname::text, n.nspowner, a.grantee, a.privilege_type
    FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    WHERE n.nspname = 'public'
    UNION ALL
    SELECT 'DATABASE', d.datname::text, d.datdba, a.grantee, a.privilege_type
    FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
    WHERE d.datname = current_database()
) granted LEFT JOIN pg_roles role ON role.oid = granted.grantee
WHERE granted.grantee <> granted.owner AND coalesce(role.rolname, '') = ANY(%(grantees)s)
GROUP BY 1, 2, 3
"""
_COLUMNS: Final = """
SELECT c.relname::text, array_agg(t.attname::text) FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND t.attnum > 0
AND NOT t.attisdropped AND c.relname = ANY(%(tables)s) GROUP BY 1
"""
# PostgreSQL lets PUBLIC execute a new function, unless its owner's default privileges say otherwise.
_NEW_FUNCTIONS: Final = psql.SQL("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")
# On Citus those are the coordinator's alone: at workers PUBLIC may execute what was made since.
_OLD_FUNCTIONS: Final = "REVOKE ALL ON FUNCTION {} FROM PUBLIC"


@dataclass(frozen=True, order=True)
class DatabaseObject:
    """An object of privileges; `name` as PostgreSQL writes it, a function's with its types."""

    kind: str
    name: str


Privileges = dict[tuple[DatabaseObject, str], frozenset[str]]
"""The privileges of a grantee on an object; an absent pair has none."""


@dataclass(frozen=True, order=True)
class Difference:
    """The privileges of a grantee on an object, and those listed for it."""

    target: DatabaseObject
    grantee: str
    has: frozenset[str]
    wanted: frozenset[str]

    def __str__(self) -> str:
        has, wanted = (", ".join(sorted(one)) or "nothing" for one in (self.has, self.wanted))
        return f"{self.grantee or 'PUBLIC'} has {has} on {self.target.name} instead of {wanted}"


def differences(alias: str) -> list[Difference]:
    """Return where the privileges of PUBLIC or of a role differ from the list."""
    grantees = [PUBLIC, *_roles(alias).values()]
    granted = sql.query(_GRANTED, {"grantees": grantees}, alias=alias)
    has = {(DatabaseObject(kind, name), to): frozenset(privileges) for kind, name, to, privileges in granted}
    wanted = _wanted(alias)
    targets = [*_whole(alias), *(target for target, _ in objects(alias))]
    pairs = [(target, grantee) for target in sorted(targets) for grantee in sorted(grantees)]
    found = (Difference(*pair, has.get(pair, NOTHING), wanted.get(pair, NOTHING)) for pair in pairs)
    return [difference for difference in found if difference.has != difference.wanted]


def grant(alias: str) -> list[Difference]:
    """Correct the differences over a connection of the owner's, and return them.

    Do nothing if the service's role is the owner: an owner keeps every privilege.
    """
    if sql.query("SELECT current_user::text", alias=alias)[0][0] == connections.settings[alias]["USER"]:
        return []
    found = differences(alias)
    statements = [statement for difference in found for statement in _statements(difference)]
    if functions := ", ".join(target.name for target, _ in objects(alias) if target.kind == "FUNCTION"):
        statements.insert(0, psql.SQL(_OLD_FUNCTIONS).format(psql.SQL(functions)))
    with connections[alias].cursor() as cursor:
        # One command, hence one transaction: a running service never lacks a privilege.
        cursor.execute(psql.SQL("; ").join([_NEW_FUNCTIONS, *statements]))
    return found


def _statements(difference: Difference) -> Iterator[psql.Composed]:
    """Yield REVOKE, which on a table includes its columns, then GRANT if anything is listed."""
    kind, name, role = difference.target.kind, difference.target.name, difference.grantee
    grantee = psql.SQL("PUBLIC") if role == PUBLIC else psql.Identifier(role)
    names = (name,) if kind in ("SCHEMA", "DATABASE") else (SCHEMA, name)
    # `regprocedure` has quoted a function already.
    quoted = psql.SQL(name) if kind == "FUNCTION" else psql.Identifier(*names)
    target = psql.SQL(kind + " {}").format(quoted)
    yield psql.SQL("REVOKE ALL ON {} FROM {}").format(target, grantee)
    privileges: list[psql.Composable] = []
    for words in sorted(difference.wanted):
        verb, _, column = words.removesuffix(")").partition(" (")
        of_column = psql.SQL(" ({})").format(psql.Identifier(column)) if column else psql.SQL("")
        privileges.append(psql.SQL(verb) + of_column)
    if privileges:
        yield psql.SQL("GRANT {} ON {} TO {}").format(psql.SQL(", ").join(privileges), target, grantee)


def _wanted(alias: str) -> Privileges:
    roles = _roles(alias)
    schema, database = _whole(alias)
    wanted: Privileges = {(schema, role): frozenset({"USAGE"}) for role in roles.values()}
    # Nobody signs in as the auditor.
    signing_in = (role for kind, role in roles.items() if kind != AUDITOR)
    wanted |= {(database, role): frozenset({"CONNECT"}) for role in signing_in}
    has_secrets = [name for name, access in TABLES.items() if access.secret]
    columns = dict(sql.query(_COLUMNS, {"tables": has_secrets}, alias=alias))
    for name, access in TABLES.items():
        reads = access.reader
        if access.secret:
            reads = frozenset(f"SELECT ({column})" for column in {*columns.get(name, ())} - access.secret)
        listed = {SERVICE: access.service, READER: reads, AUDITOR: access.auditor}
        wanted |= {(DatabaseObject("TABLE", name), role): listed[kind] for kind, role in roles.items()}
    for name, privileges in FUNCTIONS.items():
        wanted[DatabaseObject("FUNCTION", name), roles[SERVICE]] = privileges
    return wanted


def _roles(alias: str) -> dict[str, str]:
    """Return the service's role, and the reader's and the auditor's if they exist."""
    given = {READER: settings.DATABASE_READER, AUDITOR: settings.DATABASE_AUDITOR}
    known = "SELECT rolname::text FROM pg_roles WHERE rolname = ANY(%s)"
    there = {name for (name,) in sql.query(known, [[*given.values()]], alias=alias)}
    service = str(connections.settings[alias]["USER"])
    return {SERVICE: service} | {kind: name for kind, name in given.items() if name in there}


def _whole(alias: str) -> tuple[DatabaseObject, DatabaseObject]:
    name = str(sql.query("SELECT current_database()::text", alias=alias)[0][0])
    return DatabaseObject("SCHEMA", SCHEMA), DatabaseObject("DATABASE", name)


def objects(alias: str) -> list[tuple[DatabaseObject, str]]:
    """Return the contents of the schema, each with the table that it is a partition of."""
    return [(DatabaseObject(kind, name), parent) for kind, name, parent in sql.query(_RELATIONS, alias=alias)]
