"""Databases and roles of a PostgreSQL server, managed through `psql`."""

import subprocess
from typing import Protocol
from urllib.parse import unquote, urlsplit

from ..console import StepFailed
from ..setup.binaries import postgres_bin
from .postgres import DatabaseRole, clean_environment
from .processes import captured


class Addressed(Protocol):
    """A PostgreSQL server that has superusers' addresses."""

    def url(self, database: str, role: DatabaseRole | None = None) -> str:
        """Return the address of a database; without a role, for the superuser."""


def query(url: str, sql: str, *, seconds: float = 120.0) -> list[str]:
    """Run `sql` on the database at `url`; return the lines of the answer. Raises StepFailed."""
    parts = urlsplit(url)
    env = clean_environment() | {
        "PGHOST": unquote(parts.hostname or "127.0.0.1"),
        "PGPORT": str(parts.port or 5432),
        "PGUSER": unquote(parts.username or ""),
        "PGPASSWORD": unquote(parts.password or ""),
        "PGCONNECT_TIMEOUT": "5",
    }
    # SQL goes through standard input: other users of the machine can read a command's arguments.
    command = [str(postgres_bin() / "psql"), "-X", "-w", "-q", "-v", "ON_ERROR_STOP=1", "-At", "-f", "-"]
    try:
        database = unquote(parts.path.lstrip("/")) or "postgres"
        done = captured([*command, "-d", database], env=env, text=sql, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise StepFailed("PostgreSQL does not answer", hint="`./run stop`, then start again") from error
    if done.returncode != 0:
        raise StepFailed(f"PostgreSQL refused: {done.stderr.strip()}", hint="read the server's log")
    return done.stdout.splitlines()


def ensure_database(
    server: Addressed, name: str, *, owner: DatabaseRole | None = None, template: str = "template1"
) -> None:
    """Create the database `name` unless it exists; without an `owner` it belongs to the superuser."""
    admin = server.url("postgres")
    if not query(admin, f"SELECT 1 FROM pg_database WHERE datname = {_literal(name)}"):  # noqa: S608
        ownership = "" if owner is None else f" OWNER {_identifier(owner.name)}"
        query(admin, f"CREATE DATABASE {_identifier(name)}{ownership} TEMPLATE {_identifier(template)}")


def has_tables(server: Addressed, name: str) -> bool:
    """Whether the database `name` was ever migrated."""
    return query(server.url(name), "SELECT to_regclass('django_migrations') IS NOT NULL") == ["t"]


def copy_database(server: Addressed, source: str, name: str, *, owner: DatabaseRole) -> None:
    """Make the empty database `name` a copy of `source`, on which there are no sessions."""
    query(server.url("postgres"), f"DROP DATABASE {_identifier(name)}")
    ensure_database(server, name, owner=owner, template=source)


def ensure_role(server: Addressed, role: DatabaseRole, *, attributes: str = "", member_of: str = "") -> None:
    """Create a role that may sign in, unless it exists, and set its password and attributes.

    `member_of` names predefined roles to grant, separated by commas.
    """
    name, password = _identifier(role.name), _literal(role.password)
    found = f"SELECT FROM pg_roles WHERE rolname = {_literal(role.name)}"
    statements = [
        f"SELECT 'CREATE ROLE {name.replace(chr(39), chr(39) * 2)}' WHERE NOT EXISTS ({found}) \\gexec",
        f"ALTER ROLE {name} LOGIN NOSUPERUSER NOCREATEROLE NOREPLICATION NOBYPASSRLS NOCREATEDB"
        f" PASSWORD {password};",
        *([f"ALTER ROLE {name} {attributes};"] if attributes else []),
        *([f"GRANT {member_of} TO {name};"] if member_of else []),
    ]
    query(server.url("postgres"), "\n".join(statements))


def ensure_assumable_role(server: Addressed, name: str, *, by: DatabaseRole) -> None:
    """Create a role that nobody signs in as, unless it exists; `by` may assume it, and inherits nothing."""
    wanted, member = _identifier(name), _identifier(by.name)
    found = f"SELECT FROM pg_roles WHERE rolname = {_literal(name)}"
    statements = [
        f"SELECT {_literal(f'CREATE ROLE {wanted}')} WHERE NOT EXISTS ({found}) \\gexec",
        f"GRANT {wanted} TO {member} WITH INHERIT FALSE;",
    ]
    query(server.url("postgres"), "\n".join(statements))


def drop_databases(url: str, fragment: str) -> None:
    """Drop every database whose name contains `fragment` (letters and digits), with its sessions."""
    if not fragment.isalnum():
        raise ValueError(f"not a run id: {fragment!r}")
    names = query(url, f"SELECT datname FROM pg_database WHERE strpos(datname, '{fragment}') > 0")  # noqa: S608
    for name in names:
        query(url, f"DROP DATABASE IF EXISTS {_identifier(name)} WITH (FORCE)")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
