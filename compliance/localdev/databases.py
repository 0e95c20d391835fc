"""Databases on a PostgreSQL server, asked for with `psql`: ours or one given by DATABASE_URL."""

import subprocess
from urllib.parse import unquote, urlsplit

from .binaries import postgres_bin
from .console import StepFailed
from .postgres import PostgresServer, clean_environment


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
    command = [str(postgres_bin() / "psql"), "-X", "-w", "-v", "ON_ERROR_STOP=1", "-At", "-c", sql]
    try:
        done = subprocess.run(
            [*command, "-d", unquote(parts.path.lstrip("/")) or "postgres"],
            env=env,
            stdin=subprocess.DEVNULL,
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


def ensure_database(server: PostgresServer, name: str) -> None:
    """Create the database `name` unless it exists."""
    admin = server.url("postgres")
    literal, identifier = name.replace("'", "''"), name.replace('"', '""')
    if not query(admin, f"SELECT 1 FROM pg_database WHERE datname = '{literal}'"):  # noqa: S608
        query(admin, f'CREATE DATABASE "{identifier}"')


def drop_databases(url: str, fragment: str) -> None:
    """Drop every database whose name holds `fragment` (letters and digits), with its sessions."""
    if not fragment.isalnum():
        raise ValueError(f"not a run id: {fragment!r}")
    names = query(url, f"SELECT datname FROM pg_database WHERE strpos(datname, '{fragment}') > 0")  # noqa: S608
    for name in names:
        identifier = name.replace('"', '""')
        query(url, f'DROP DATABASE IF EXISTS "{identifier}" WITH (FORCE)')
