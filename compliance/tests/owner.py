"""What tests do as the owner of the tables, beside the service's own connections."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import connections

from compliance.core import environments
from compliance.stores.database_owner import as_owner
from compliance.tests.citus import ON_CITUS
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
        if ON_CITUS:
            with owner.cursor() as cursor:
                cursor.execute("SET citus.enable_unsafe_triggers = on")
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
    """A table under a lock by the owner, which locks out the test, too; on Citus its shards as well.

    `lock`: the table and the mode, as `agents_agent IN SHARE MODE`.
    """
    alias = environments.current().alias
    owner = connections[alias].copy()
    owner.settings_dict.update(settings.DATABASE_OWNERS[alias])
    with ExitStack() as stack:
        stack.callback(owner.close)
        for worker in stack.enter_context(workers_as_owner()) if ON_CITUS else ():
            _lock_shards(worker, lock)
        with owner.cursor() as cursor:
            cursor.execute(f"BEGIN; LOCK TABLE {lock}")
        yield


@contextmanager
def workers_as_owner() -> Iterator[list[Worker]]:
    """Connections of the owner to each worker of Citus; what they do is undone at the end."""
    owner = settings.DATABASE_OWNERS[environments.current().alias]
    with _workers(owner["USER"], owner["PASSWORD"]) as found:
        yield found
        for worker in found:
            worker.rollback()


def end_sessions() -> None:
    """End every session of the service's role in the current environment's database but the test's own.

    On Citus also at the workers.
    """
    with connections[environments.current().alias].cursor() as cursor:
        cursor.execute(_END_OTHERS)
    if ON_CITUS:
        end_sessions_at_workers()


def end_sessions_at_workers() -> None:
    """End every session of the service's role at each worker of Citus."""
    given = connections[environments.current().alias].get_connection_params()
    with _workers(given["user"], given["password"]) as found:
        for worker in found:
            worker.execute(_END_OTHERS)


@contextmanager
def _workers(user: str, password: str) -> Iterator[list[Worker]]:
    connection = connections[environments.current().alias]
    name = connection.get_connection_params()["dbname"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT nodename, nodeport FROM pg_dist_node WHERE groupid <> 0")
        nodes = cursor.fetchall()
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                psycopg.connect(dbname=name, host=host, port=port, user=user, password=password)
            )
            for host, port in nodes
        ]


def _lock_shards(worker: Worker, lock: str) -> None:
    worker.execute("SET citus.enable_manual_changes_to_shards = on")
    table, _, mode = lock.partition(" ")
    shards = worker.execute(
        "SELECT shard_name(logicalrelid, shardid) FROM pg_dist_shard JOIN pg_dist_placement USING (shardid)"
        " WHERE logicalrelid = %s::regclass"
        " AND groupid = (SELECT groupid FROM pg_dist_local_group)",
        [table],
    )
    for (shard,) in shards.fetchall():
        worker.execute(f"LOCK TABLE {shard} {mode}")


def _lives(alias: str, pid: int) -> bool:
    with connections[alias].cursor() as cursor:
        # Inside a transaction the view stays as it was first seen.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT FROM pg_stat_activity WHERE pid = %s", [pid])
        return bool(cursor.rowcount)
