"""Databases and roles of a PostgreSQL server."""

from typing import Any, Protocol

import psycopg
from psycopg.sql import SQL, Composed, Identifier, Literal

from ..console import StepFailed
from .postgres import DatabaseRole

Statement = str | Composed


class Addressed(Protocol):
    """A PostgreSQL server that has superusers' addresses."""

    def url(self, database: str, role: DatabaseRole | None = None) -> str:
        """Return the address of a database; without a role, for the superuser."""


def query(url: str, *statements: Statement) -> list[tuple[Any, ...]]:
    """Execute the statements on the database at `url`; return the last one's rows. Raises StepFailed."""
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            for statement in statements:
                cursor = connection.execute(SQL(statement) if isinstance(statement, str) else statement)
            return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise StepFailed(f"PostgreSQL refused: {error}", hint="read the server's log") from error


def ensure_database(
    server: Addressed, name: str, *, owner: DatabaseRole | None = None, template: str = "template1"
) -> None:
    """Create the database `name` unless it exists; without an `owner` it belongs to the superuser."""
    admin = server.url("postgres")
    if not query(admin, SQL("SELECT 1 FROM pg_database WHERE datname = {}").format(Literal(name))):
        made = SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template))
        query(admin, made if owner is None else made + SQL(" OWNER {}").format(Identifier(owner.name)))


def has_tables(server: Addressed, name: str) -> bool:
    """Whether the database `name` was ever migrated."""
    return query(server.url(name), "SELECT to_regclass('django_migrations') IS NOT NULL") == [(True,)]


def copy_database(server: Addressed, source: str, name: str, *, owner: DatabaseRole) -> None:
    """Make the empty database `name` a copy of `source`, on which there are no sessions."""
    query(server.url("postgres"), SQL("DROP DATABASE {}").format(Identifier(name)))
    ensure_database(server, name, owner=owner, template=source)


def ensure_role(
    server: Addressed, role: DatabaseRole, *, attributes: str = "NOCREATEDB", member_of: str = ""
) -> None:
    """Create a role that may sign in, unless it exists, and set its password and attributes.

    `member_of` names predefined roles to grant, separated by commas.
    """
    _ensure_named(server, role.name)
    name = Identifier(role.name)
    rights = f"LOGIN NOSUPERUSER NOCREATEROLE NOREPLICATION NOBYPASSRLS {attributes}"
    query(
        server.url("postgres"),
        SQL(f"ALTER ROLE {{}} {rights} PASSWORD {{}}").format(name, Literal(role.password)),
        *([SQL(f"GRANT {member_of} TO {{}}").format(name)] if member_of else []),
    )


def ensure_assumable_role(server: Addressed, name: str, *, by: DatabaseRole) -> None:
    """Create a role that nobody signs in as, unless it exists; `by` may assume it, and inherits nothing."""
    _ensure_named(server, name)
    grant = SQL("GRANT {} TO {} WITH INHERIT FALSE").format(Identifier(name), Identifier(by.name))
    query(server.url("postgres"), grant)


def _ensure_named(server: Addressed, name: str) -> None:
    if not query(
        server.url("postgres"), SQL("SELECT 1 FROM pg_roles WHERE rolname = {}").format(Literal(name))
    ):
        query(server.url("postgres"), SQL("CREATE ROLE {}").format(Identifier(name)))


def drop_databases(url: str, fragment: str) -> None:
    """Drop every database whose name contains `fragment` (letters and digits), with its sessions."""
    if not fragment.isalnum():
        raise ValueError(f"not a run id: {fragment!r}")
    for (name,) in query(url, f"SELECT datname FROM pg_database WHERE strpos(datname, '{fragment}') > 0"):  # noqa: S608
        query(url, SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
