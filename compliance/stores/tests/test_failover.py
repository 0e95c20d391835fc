"""What a change of roles among the database's nodes means to a connection."""

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from compliance.api.exceptions import error_parts
from compliance.core.environments import Environment
from compliance.localdev.servers.databases import query
from compliance.localdev.servers.postgres import PostgresServer
from compliance.tests.waiting import eventually


@contextmanager
def closing(wrapper: BaseDatabaseWrapper) -> Iterator[BaseDatabaseWrapper]:
    try:
        yield wrapper
    finally:
        wrapper.close()


@pytest.fixture
def connection(db: None) -> Iterator[BaseDatabaseWrapper]:
    with closing(connections.create_connection(Environment.LIVE.alias)) as wrapper:
        yield wrapper


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """A server of the test's own, for its settings hold for all its databases."""
    # Root's server runs as `nobody`, who can't enter pytest's folders.
    outside = Path(tempfile.mkdtemp(dir="/var/tmp"))
    outside.chmod(0o755)
    made = PostgresServer(
        folder=outside / "server",
        ports=tmp_path / "ports.json",
        log=tmp_path / "postgres.log",
        password="secret",
    )
    made.start()
    yield made
    made.stop()
    shutil.rmtree(outside)


@contextmanager
def connected_to(server: PostgresServer) -> Iterator[BaseDatabaseWrapper]:
    wrapper = connections.create_connection(Environment.LIVE.alias)
    parts = urlsplit(server.url("postgres"))
    names = {"NAME": "postgres", "USER": parts.username, "PASSWORD": parts.password, "PORT": parts.port}
    wrapper.settings_dict = {**wrapper.settings_dict, **names}
    with closing(wrapper):
        yield wrapper


def await_standby(server: PostgresServer, name: str) -> None:
    """Have commits wait for the standby `name`, which is absent; empty: for none."""
    change = f"SET synchronous_standby_names = '{name}'" if name else "RESET synchronous_standby_names"
    query(server.url("postgres"), f"ALTER SYSTEM {change}", "SELECT pg_reload_conf()")
    assert eventually(
        lambda: query(server.url("postgres"), "SHOW synchronous_standby_names") == [(name,)], seconds=60
    )


def cancel_waiting(server: PostgresServer) -> None:
    """End the wait for the standby of the one session that waits for it."""
    cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    assert eventually(lambda: query(server.url("postgres"), cancel) == [(True,)], seconds=60)


def test_write_refused_by_a_standby_is_an_outage_and_replaces_the_connection(
    connection: BaseDatabaseWrapper,
) -> None:
    connection.cursor().execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")

    with pytest.raises(OperationalError) as refused:
        connection.cursor().execute("CREATE TABLE written (number integer)")

    answer = error_parts(refused.value)
    assert answer is not None
    assert answer[0] == 503
    connection.close_if_unusable_or_obsolete()
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        assert cursor.fetchone() == ("off",)


def test_connections_are_made_to_a_primary_only(connection: BaseDatabaseWrapper) -> None:
    connection.ensure_connection()

    assert connection.get_connection_params()["target_session_attrs"] == "primary"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_commit_that_ceased_to_wait_for_its_standby_is_not_acknowledged(server: PostgresServer) -> None:
    with connected_to(server) as connection, ThreadPoolExecutor(1) as threads:
        connection.cursor().execute("CREATE TABLE written (number integer)")
        await_standby(server, "absent")

        cancelled = threads.submit(cancel_waiting, server)
        with pytest.raises(OperationalError, match="not replicated"):
            connection.cursor().execute("INSERT INTO written VALUES (1)")
        cancelled.result()
        connection.set_autocommit(False)
        connection.cursor().execute("INSERT INTO written VALUES (2)")
        cancelled = threads.submit(cancel_waiting, server)
        with pytest.raises(OperationalError, match="not replicated"):
            connection.commit()
        cancelled.result()

        await_standby(server, "")
        connection.rollback()
        connection.set_autocommit(True)
        connection.cursor().execute("INSERT INTO written VALUES (3)")
