"""Databases and roles of a PostgreSQL server; `admin` is a superuser's address of any of its databases."""

from typing import Any

import psycopg
from psycopg.sql import SQL, Composed, Identifier, Literal

from ..console import StepFailed
from .postgres import DatabaseRole


def query(url: str, *statements: str | Composed) -> list[tuple[Any, ...]]:
    """Execute the statements on the database at `url`; return the last one's rows. Raises StepFailed."""
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            for statement in statements:
                cursor = connection.execute(SQL(statement) if isinstance(statement, str) else statement)
            return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise StepFailed(f"PostgreSQL refused: {error}", hint="read the server's log") from error


def ensure_database(
    admin: str, name: str, *, owner: DatabaseRole | None = None, template: str = "template1"
) -> None:
    """Create the database `name` unless it exists; without an `owner` it belongs to the superuser."""
    if not query(admin, SQL("SELECT 1 FROM pg_database WHERE datname = {}").format(Literal(name))):
        made = SQL("CREATE DATABASE {} TEMPLATE {}").format(Identifier(name), Identifier(template))
        query(admin, made if owner is None else made + SQL(" OWNER {}").format(Identifier(owner.name)))


def ensure_role(
    admin: str, role: DatabaseRole, *, attributes: str = "NOCREATEDB", member_of: str = ""
) -> None:
    """Create a role that may sign in, unless it exists, and set its password and attributes.

    `member_of` names predefined roles to grant, separated by commas.
    """
    name = _ensure_named(admin, role.name)
    rights = f"LOGIN NOSUPERUSER NOCREATEROLE NOREPLICATION NOBYPASSRLS {attributes}"
    query(admin, SQL(f"ALTER ROLE {{}} {rights} PASSWORD {{}}").format(name, Literal(role.password)))
    if member_of:
        query(admin, SQL(f"GRANT {member_of} TO {{}}").format(name))


def ensure_assumable_role(admin: str, name: str, *, by: DatabaseRole) -> None:
    """Create a role that nobody signs in as, unless it exists; `by` may assume it, and inherits nothing."""
    grant = SQL("GRANT {} TO {} WITH INHERIT FALSE")
    query(admin, grant.format(_ensure_named(admin, name), Identifier(by.name)))


def _ensure_named(admin: str, name: str) -> Identifier:
    if not query(admin, SQL("SELECT 1 FROM pg_roles WHERE rolname = {}").format(Literal(name))):
        query(admin, SQL("CREATE ROLE {}").format(Identifier(name)))
    return Identifier(name)


def drop_databases(url: str, fragment: str) -> None:
    """Drop every database whose name contains `fragment` (letters and digits), with its sessions."""
    if not fragment.isalnum():
        raise ValueError(f"not a run id: {fragment!r}")
    for (name,) in query(url, f"SELECT datname FROM pg_database WHERE strpos(datname, '{fragment}') > 0"):  # noqa: S608
        query(url, SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
