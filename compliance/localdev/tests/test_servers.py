"""The real servers: started, killed, started again over their own data."""

import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connections
from pytest_django.fixtures import Settings

from compliance.localdev.console import StepFailed
from compliance.localdev.ports import HOST
from compliance.localdev.servers.databases import (
    drop_databases,
    ensure_assumable_role,
    ensure_database,
    ensure_role,
    query,
)
from compliance.localdev.servers.postgres import SUPERUSER, DatabaseRole, PostgresServer
from compliance.localdev.servers.redis import RedisServer, ping
from compliance.localdev.servers.softhsm import SoftHsm, find_module
from compliance.stores.database_owner import as_owner
from ops.privileges.role_audit import excesses

pytestmark = [
    pytest.mark.slow,
    # Daemons outlive the object that started them; that is their purpose.
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]


@pytest.fixture(scope="module")
def made_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    folder = tmp_path_factory.mktemp("server")
    # Root's server runs as `nobody`, who can't enter pytest's folders.
    outside = Path(tempfile.mkdtemp(dir="/var/tmp"))
    outside.chmod(0o755)
    server = PostgresServer(
        folder=outside / "with a space" / "postgres",
        ports=folder / "ports.json",
        log=folder / "postgres.log",
        password="it's p@ss/word",
    )
    yield server
    server.stop()
    shutil.rmtree(outside)


@pytest.fixture
def postgres(made_postgres: PostgresServer) -> PostgresServer:
    """A running server; the same data for all tests, for making it takes a second."""
    made_postgres.start()
    return made_postgres


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "with a space", tmp_path / "ports.json", "password")
    server.start()
    yield server
    server.stop()


def kill(server: PostgresServer | RedisServer) -> None:
    assert server.stop(((signal.SIGKILL, 60.0),))


def test_postgres_is_new_enough_durable_and_not_started_twice(postgres: PostgresServer) -> None:
    url = postgres.url("postgres")

    assert not postgres.start()

    settings = query(url, "SELECT current_setting('fsync'), current_setting('synchronous_commit')")
    assert settings == [("on", "on")]
    assert int(query(url, "SHOW server_version_num")[0][0]) >= 150000


def test_postgres_wants_its_password(postgres: PostgresServer) -> None:
    methods = query(postgres.url("postgres"), "SELECT DISTINCT auth_method FROM pg_hba_file_rules")

    assert methods == [("scram-sha-256",)]


def test_a_killed_postgres_comes_back_with_its_data(postgres: PostgresServer) -> None:
    ensure_database(postgres.url("postgres"), "odd 'name\"")
    ensure_database(postgres.url("postgres"), "odd 'name\"")
    query(postgres.url("odd 'name\""), "CREATE TABLE kept AS SELECT 42 AS answer")
    port = postgres.port()

    kill(postgres)

    assert postgres.running() is None
    assert postgres.start()
    assert postgres.port() == port
    assert query(postgres.url("odd 'name\""), "SELECT answer FROM kept") == [(42,)]


def test_a_pid_file_that_names_a_strangers_process_is_no_obstacle(postgres: PostgresServer) -> None:
    pid_file = postgres.data / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    postgres.stop()
    pid_file.write_text("\n".join(["1", *lines[1:]]) + "\n")

    assert postgres.running() is None
    assert postgres.start()


def test_another_port_is_taken_when_ours_was(postgres: PostgresServer) -> None:
    port = postgres.port()
    postgres.stop()

    with socket.create_server((HOST, port)):
        postgres.start()

    assert postgres.port() != port
    assert query(postgres.url("postgres"), "SELECT 1") == [(1,)]


OWNER = DatabaseRole("the 'owner\"", "it's p@ss:word")


def test_role_signs_in_and_is_no_superuser(postgres: PostgresServer) -> None:
    for password in ("first", OWNER.password):
        role = DatabaseRole(OWNER.name, password)
        ensure_role(postgres.url("postgres"), role, attributes="CREATEDB", member_of="pg_monitor")

    url = postgres.url("postgres", OWNER)

    found = query(
        url,
        "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolname"
        " FROM pg_roles WHERE rolname = current_user",
    )
    assert found == [(False, False, True, False, False, OWNER.name)]
    with pytest.raises(StepFailed, match="authentication failed"):
        query(postgres.url("postgres", DatabaseRole(OWNER.name, "first")), "SELECT 1")
    with pytest.raises(StepFailed, match="permission denied"):
        query(url, "SELECT pg_read_file('PG_VERSION')")


def test_role_that_another_assumes_signs_in_nowhere_and_lends_it_nothing(postgres: PostgresServer) -> None:
    ensure_role(postgres.url("postgres"), OWNER)

    for _ in range(2):
        ensure_assumable_role(postgres.url("postgres"), "an 'auditor\"", by=OWNER)

    question = "SELECT current_user, pg_has_role('an ''auditor\"', 'USAGE')"
    url = postgres.url("postgres", OWNER)
    assert query(url, question) == [(OWNER.name, False)]
    assert query(url, 'SET ROLE "an \'auditor"""', question) == [("an 'auditor\"", True)]
    assert query(url, "SELECT rolcanlogin FROM pg_roles WHERE rolname ~ '^an'") == [(False,)]


def test_service_as_a_superuser_is_told(
    postgres: PostgresServer, settings: Settings, committed: None
) -> None:
    settings.DATABASE_OWNERS = {
        "default": {"USER": SUPERUSER, "PASSWORD": postgres.password, "PORT": str(postgres.port())}
    }
    ensure_database(postgres.url("postgres"), connections["default"].settings_dict["NAME"])

    with as_owner("default"):
        told = excesses("default")

    assert told == ["is a superuser: it can change and delete audit entries and run programs on the server"]


def test_databases_of_a_run_are_dropped_with_their_sessions(postgres: PostgresServer) -> None:
    for name in ("test_live_r12ab", "test_live_r12ab_gw0", "stays"):
        ensure_database(postgres.url("postgres"), name)

    drop_databases(postgres.url("postgres"), "r12ab")

    rows = query(postgres.url("postgres"), "SELECT datname FROM pg_database WHERE NOT datistemplate")
    left = [name for (name,) in rows]
    assert {"stays", "postgres"} <= set(left)
    assert not [name for name in left if "r12ab" in name]


@pytest.mark.parametrize("fragment", ["", "a'b", "%", "x_y"])
def test_only_run_ids_may_choose_databases_to_drop(fragment: str) -> None:
    with pytest.raises(ValueError, match="run id"):
        drop_databases("postgres://nowhere/none", fragment)


def test_a_killed_valkey_comes_back(redis: RedisServer) -> None:
    assert ping(redis.url())
    assert not ping(redis.url().replace("password", "guess"))

    kill(redis)

    assert redis.running() is None
    assert redis.start()
    assert ping(redis.url())


def test_tokens_are_made_once_and_not_replaced(tmp_path: Path) -> None:
    module = find_module(tmp_path / "package")
    tokens = SoftHsm(tmp_path / "soft hsm", module, ("one", "two"), user_pin="12345678", so_pin="87654321")

    tokens.ensure()
    made = sorted((tokens.folder / "tokens").iterdir())
    tokens.ensure()

    assert len(made) == 2
    assert sorted((tokens.folder / "tokens").iterdir()) == made


def test_database_is_copied_with_its_tables(postgres: PostgresServer) -> None:
    owner, admin = DatabaseRole("owner of both", "secret"), postgres.url("postgres")
    ensure_role(admin, owner)
    ensure_database(admin, "source", owner=owner)
    query(postgres.url("source", owner), "CREATE TABLE django_migrations AS SELECT 7 AS id")

    ensure_database(admin, "copy", owner=owner, template="source")

    assert query(postgres.url("copy", owner), "SELECT id FROM django_migrations") == [(7,)]
