"""Databases on a PostgreSQL server, asked for with `psql`: ours or one given by DATABASE_URL."""

import subprocess
from urllib.parse import unquote, urlsplit

from .binaries import postgres_bin
from .console import StepFailed
from .postgres import PostgresServer, Role, clean_environment


def query(url: str, sql: str, *, seconds: float = 20.0) -> list[str]:
    """The lines `sql` answers on the database at `url`. Raises StepFailed when it can't be asked."""
    parts = urlsplit(url)
    env = clean_environment() | {
        "PGHOST": unquote(parts.hostname or "127.0.0.1"),
        "PGPORT": str(parts.port or 5432),
        "PGUSER": unquote(parts.username or ""),
        "PGPASSWORD": unquote(parts.password or ""),
        "PGCONNECT_TIMEOUT": "5",
    }
    # By standard input: other users of the machine can read a command's arguments.
    command = [str(postgres_bin() / "psql"), "-X", "-w", "-q", "-v", "ON_ERROR_STOP=1", "-At", "-f", "-"]
    try:
        done = subprocess.run(
            [*command, "-d", unquote(parts.path.lstrip("/")) or "postgres"],
            env=env,
            input=sql,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailed("PostgreSQL does not answer", hint="`./run stop`, then start again") from error
    if done.returncode != 0:
        raise StepFailed(f"PostgreSQL refused: {done.stderr.strip()}", hint="read the server's log")
    return done.stdout.splitlines()


def ensure_database(server: PostgresServer, name: str, *, owner: Role | None = None) -> None:
    """Create the database `name` unless it exists; it belongs to `owner`, or to the superuser."""
    admin = server.url("postgres")
    if not query(admin, f"SELECT 1 FROM pg_database WHERE datname = {_literal(name)}"):  # noqa: S608
        belongs = "" if owner is None else f" OWNER {_identifier(owner.name)}"
        query(admin, f"CREATE DATABASE {_identifier(name)}{belongs}")


def hand_over_databases(server: PostgresServer, prefix: str, owner: Role) -> list[str]:
    """Give `owner` the superuser's databases whose names begin with `prefix`; their names.

    An earlier version ran the service as the superuser, and everything belongs to it.
    """
    held = query(
        server.url("postgres"),
        f"SELECT datname FROM pg_database WHERE datdba = 10 AND starts_with(datname, {_literal(prefix)})",  # noqa: S608
    )
    for name in held:
        query(server.url(name), _HAND_OVER.format(owner=_literal(owner.name)))
    return held


def ensure_role(server: PostgresServer, role: Role, *, attributes: str = "", member_of: str = "") -> None:
    """Create a role that may sign in, unless it exists, with its password and `attributes` as given here.

    `member_of`: predefined roles whose privileges it gets, separated by commas.
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


# Sequences follow their tables, and what belongs to an extension stays. The database comes last: it is
# what tells that all was handed over.
_HAND_OVER = """
DO $do$
DECLARE
    new_owner name := {owner};
    line record;
BEGIN
    FOR line IN
        SELECT format('ALTER TABLE %s OWNER TO %I', c.oid::regclass, new_owner) AS statement
        FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND r.rolname <> new_owner
        AND NOT EXISTS (SELECT FROM pg_depend d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
        UNION ALL
        SELECT format('ALTER ROUTINE %s OWNER TO %I', p.oid::regprocedure, new_owner)
        FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
        WHERE p.pronamespace = 'public'::regnamespace AND r.rolname <> new_owner
        AND NOT EXISTS (SELECT FROM pg_depend d
            WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE line.statement;
    END LOOP;
    EXECUTE format('ALTER DATABASE %I OWNER TO %I', current_database(), new_owner);
END
$do$
"""


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def drop_databases(url: str, fragment: str) -> None:
    """Drop every database whose name holds `fragment` (letters and digits), with its sessions."""
    if not fragment.isalnum():
        raise ValueError(f"not a run id: {fragment!r}")
    names = query(url, f"SELECT datname FROM pg_database WHERE strpos(datname, '{fragment}') > 0")  # noqa: S608
    for name in names:
        query(url, f"DROP DATABASE IF EXISTS {_identifier(name)} WITH (FORCE)")
