"""Compares the privileges in a database with those of `privileges.py`, and has the owner set them right."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import connections
from psycopg import sql as psql

from compliance.wiring.privileges import FUNCTIONS, NOTHING, PARTITIONED, TABLES

SCHEMA: Final = "public"
PUBLIC: Final = ""
"""Everybody, as a grantee; the name of no role."""

# What belongs to an extension is left alone.
_RELATIONS: Final = """
SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, c.relname::text, coalesce(
    (SELECT p.relname::text FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
     WHERE i.inhrelid = c.oid AND c.relispartition), '')
FROM pg_class c
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
AND NOT EXISTS (SELECT FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
UNION ALL
SELECT 'FUNCTION', p.oid::regprocedure::text, '' FROM pg_proc p
WHERE p.pronamespace = %(schema)s::regnamespace
AND NOT EXISTS (SELECT FROM pg_depend d
    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
ORDER BY 1, 2
"""
_GRANTED: Final = """
SELECT kind, name, coalesce(role.rolname::text, ''), privilege FROM (
    SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, c.relname::text AS name,
        c.relowner AS owner, a.grantee, a.privilege_type AS privilege
    FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    UNION ALL
    SELECT 'TABLE', c.relname::text, c.relowner, a.grantee, format('%%s (%%s)', a.privilege_type, t.attname)
    FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid, aclexplode(t.attacl) a
    WHERE c.relnamespace = %(schema)s::regnamespace AND NOT t.attisdropped
    UNION ALL
    SELECT 'FUNCTION', p.oid::regprocedure::text, p.proowner, a.grantee, a.privilege_type
    FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    WHERE p.pronamespace = %(schema)s::regnamespace
    UNION ALL
    SELECT 'SCHEMA', n.nspname::text, n.nspowner, a.grantee, a.privilege_type
    FROM pg_namespace n, aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    WHERE n.nspname = %(schema)s
    UNION ALL
    SELECT 'DATABASE', d.datname::text, d.datdba, a.grantee, a.privilege_type
    FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
    WHERE d.datname = current_database()
) granted LEFT JOIN pg_roles role ON role.oid = granted.grantee
WHERE granted.grantee <> granted.owner AND coalesce(role.rolname, '') = ANY(%(grantees)s)
"""
_COLUMNS: Final = """
SELECT c.relname::text, t.attname::text FROM pg_attribute t JOIN pg_class c ON c.oid = t.attrelid
WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'p') AND t.attnum > 0
AND NOT t.attisdropped AND c.relname = ANY(%(tables)s)
"""
# A function is everybody's when it is made, unless its maker's defaults say otherwise.
_NEW_FUNCTIONS: Final = psql.SQL("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC")


@dataclass(frozen=True, order=True)
class Object:
    """Something that privileges are given on; `name` as PostgreSQL writes it, a function's with its types."""

    kind: str
    name: str


@dataclass(frozen=True, order=True)
class Difference:
    """What a grantee has on an object, and what it should have."""

    target: Object
    grantee: str
    has: frozenset[str]
    wanted: frozenset[str]

    def __str__(self) -> str:
        who = self.grantee or "PUBLIC"
        has, wanted = (", ".join(sorted(one)) or "nothing" for one in (self.has, self.wanted))
        return f"{who} has {has} on {self.target.name} instead of {wanted}"


def service_role_name(alias: str) -> str:
    """The role of DATABASE_URL."""
    return str(connections.settings[alias]["USER"])


def unlisted(alias: str) -> list[Object]:
    """Tables and functions of the database that `privileges.py` has no line for."""
    listed = {"TABLE": TABLES, "FUNCTION": FUNCTIONS}
    return [
        target
        for target, parent in _objects(alias)
        if target.kind in listed and target.name not in listed[target.kind] and parent != PARTITIONED
    ]


def differences(alias: str) -> list[Difference]:
    """Where privileges of everybody, the service or the reader are others than listed."""
    grantees = [PUBLIC, *_roles(alias)]
    has = _granted(alias, grantees)
    wanted = _wanted(alias)
    return sorted(
        (
            Difference(target, grantee, has.get((target, grantee), NOTHING), should)
            for target in _targets(alias)
            for grantee in grantees
            if has.get((target, grantee), NOTHING) != (should := wanted.get((target, grantee), NOTHING))
        ),
        key=lambda difference: (difference.target, difference.grantee),
    )


def grant(alias: str) -> list[Difference]:
    """Set right what differs, over a connection of the owner's; what differed.

    Does nothing where the service's role is the owner: nothing could be kept from it.
    """
    if _ask(alias, "SELECT current_user::text")[0][0] == service_role_name(alias):
        return []
    found = differences(alias)
    statements = [statement for difference in found for statement in _statements(difference)]
    with connections[alias].cursor() as cursor:
        # Sent as one, they take effect as one: a running service misses nothing meanwhile.
        cursor.execute(psql.SQL("; ").join([_NEW_FUNCTIONS, *statements]))
    return found


def _statements(difference: Difference) -> Iterator[psql.Composed]:
    """Revoking a table's privileges revokes those of its columns, too."""
    target, name = _written(difference.target), difference.grantee
    who = psql.SQL("PUBLIC") if name == PUBLIC else psql.Identifier(name)
    yield psql.SQL("REVOKE ALL ON {} FROM {}").format(target, who)
    if difference.wanted:
        privileges = psql.SQL(", ").join(map(_privilege, sorted(difference.wanted)))
        yield psql.SQL("GRANT {} ON {} TO {}").format(privileges, target, who)


def _privilege(words: str) -> psql.Composable:
    """`SELECT`, or `UPDATE (column)` with the column quoted."""
    what, _, column = words.removesuffix(")").partition(" (")
    if not column:
        return psql.SQL(what)
    return psql.SQL("{} ({})").format(psql.SQL(what), psql.Identifier(column))


def _written(target: Object) -> psql.Composable:
    if target.kind == "FUNCTION":
        # As `regprocedure` writes it, quoted where need be.
        return psql.SQL("FUNCTION " + target.name)
    name = (target.name,) if target.kind in ("SCHEMA", "DATABASE") else (SCHEMA, target.name)
    return psql.SQL(target.kind + " {}").format(psql.Identifier(*name))


def _wanted(alias: str) -> dict[tuple[Object, str], frozenset[str]]:
    """The privileges listed, by what they are on and whose they are; what is absent has none."""
    service, *reader = _roles(alias)
    columns = _columns(alias)
    wanted: dict[tuple[Object, str], frozenset[str]] = {}
    for role in (service, *reader):
        wanted[Object("SCHEMA", SCHEMA), role] = frozenset({"USAGE"})
        wanted[Object("DATABASE", _database(alias)), role] = frozenset({"CONNECT"})
    for name, access in TABLES.items():
        wanted[Object("TABLE", name), service] = access.service
        for role in reader:
            open_columns = (f"SELECT ({column})" for column in columns.get(name, set()) - access.secret)
            wanted[Object("TABLE", name), role] = frozenset(open_columns) if access.secret else access.reader
    for name, privileges in FUNCTIONS.items():
        wanted[Object("FUNCTION", name), service] = privileges
    return wanted


def _roles(alias: str) -> list[str]:
    """The service's role, and the reader's where there is one."""
    reader = settings.DATABASE_READER
    exists = _ask(alias, "SELECT FROM pg_roles WHERE rolname = %(name)s", name=reader)
    return [service_role_name(alias), *([reader] if exists else [])]


def _database(alias: str) -> str:
    return str(_ask(alias, "SELECT current_database()::text")[0][0])


def _targets(alias: str) -> list[Object]:
    whole = [Object("SCHEMA", SCHEMA), Object("DATABASE", _database(alias))]
    return [*whole, *(target for target, _ in _objects(alias))]


def _objects(alias: str) -> list[tuple[Object, str]]:
    """What the schema holds, each with the table that it is a partition of."""
    return [(Object(kind, name), parent) for kind, name, parent in _ask(alias, _RELATIONS)]


def _granted(alias: str, grantees: Iterable[str]) -> dict[tuple[Object, str], frozenset[str]]:
    found: dict[tuple[Object, str], frozenset[str]] = {}
    for kind, name, grantee, privilege in _ask(alias, _GRANTED, grantees=list(grantees)):
        key = Object(kind, name), grantee
        found[key] = found.get(key, NOTHING) | {privilege}
    return found


def _columns(alias: str) -> dict[str, set[str]]:
    tables = [name for name, access in TABLES.items() if access.secret]
    found: dict[str, set[str]] = {}
    for table, column in _ask(alias, _COLUMNS, tables=tables):
        found.setdefault(table, set()).add(column)
    return found


def _ask(alias: str, statement: str, **params: Any) -> list[Any]:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement, {"schema": SCHEMA, **params})
        return list(cursor.fetchall())
