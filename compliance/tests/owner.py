"""What tests do as the owner of the tables, beside the service's own connections."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import connections

from compliance.core import environments
from compliance.stores.database_owner import as_owner
from compliance.tests.waiting import eventually

Worker = psycopg.Connection[tuple[Any, ...]]
_END_OTHERS: Final = (
    "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
)


@contextmanager
def owning() -> Iterator[None]:
    """Act on the current environment's database as its owner; the session is gone after the block."""
    alias = environments.current().alias
    if not settings.DATABASE_OWNERS[alias]:
        yield
        return
    with as_owner(alias):
        owner = connections[alias]
        owner.ensure_connection()
        pid = owner.connection.info.backend_pid
        yield
    assert eventually(lambda: not _lives(alias, pid))


def execute_as_owner(*statements: str) -> None:
    """Run each, and commit it, in the current environment's database."""
    with owning(), connections[environments.current().alias].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def quoted_service_role() -> str:
    """The role that the tests, as the service, connect as; quoted."""
    return '"{}"'.format(connections[environments.current().alias].settings_dict["USER"])


@contextmanager
def locked_table(lock: str) -> Iterator[None]:
    """A table under a lock by the owner, which locks out the test, too.

    `lock`: the table and the mode, as `agents_agent IN SHARE MODE`.
    """
    alias = environments.current().alias
    owner = connections[alias].copy()
    owner.settings_dict.update(settings.DATABASE_OWNERS[alias])
    try:
        with owner.cursor() as cursor:
            cursor.execute(f"BEGIN; LOCK TABLE {lock}")
        yield
    finally:
        owner.close()


def end_sessions() -> None:
    """End every session of the service's role in the current environment's database but the test's own."""
    with connections[environments.current().alias].cursor() as cursor:
        cursor.execute(_END_OTHERS)


def _lives(alias: str, pid: int) -> bool:
    with connections[alias].cursor() as cursor:
        # Inside a transaction the view stays as it was first seen.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid])
        return bool(cursor.rowcount)
