"""The cluster's database: the death of its primary loses nothing that was acknowledged."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from django.conf import settings
from django.db import InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django.plugin import DjangoDbBlocker

from compliance.core.environments import Environment
from compliance.localdev.console import StepFailed
from compliance.localdev.layout import find_layout
from compliance.localdev.servers.servers import Servers
from compliance.tests.waiting import eventually
from deploy.tests.programs import output_of, program
from ops.tests.cluster.configurations import CAPS, NodeAddress, WebAddress, haproxy, patroni
from ops.tests.cluster.programs import Programs, find_programs
from ops.tests.cluster.topology import Cluster

WRITERS = 4
SECONDS = 90.0
NODE = NodeAddress("node-1", "10.0.0.1", 5432, 8008, 2379, 2380)


class Writer(threading.Thread):
    """Inserts numbers of its own over the service's backend, and keeps those that were acknowledged."""

    def __init__(self, cluster: Cluster, first: int, stopping: threading.Event) -> None:
        super().__init__(daemon=True)
        self._connection = connected_to(cluster)
        self._next, self._stopping = first, stopping
        self.acknowledged: list[int] = []

    def run(self) -> None:
        while not self._stopping.is_set():
            self._connection.close_if_unusable_or_obsolete()
            self._next += 1
            try:
                with self._connection.cursor() as cursor:
                    cursor.execute("INSERT INTO written VALUES (%s)", [self._next])
            except (OperationalError, InterfaceError):
                time.sleep(0.05)
            else:
                self.acknowledged.append(self._next)
        self._connection.close()


def connected_to(cluster: Cluster) -> BaseDatabaseWrapper:
    wrapper = connections.create_connection(Environment.LIVE.alias)
    parts = urlsplit(cluster.url("postgres"))
    names = {"NAME": "postgres", "USER": parts.username, "PASSWORD": parts.password, "PORT": parts.port}
    wrapper.settings_dict = {**wrapper.settings_dict, **names}
    wrapper.inc_thread_sharing()
    return wrapper


@pytest.fixture
def programs() -> Programs:
    try:
        return find_programs(find_layout())
    except StepFailed as failure:
        pytest.skip(failure.message)


@pytest.fixture
def cluster(tmp_path: Path, programs: Programs, django_db_blocker: DjangoDbBlocker) -> Iterator[Cluster]:
    made = Cluster(Servers(find_layout()), programs, tmp_path / "cluster")
    # Its databases are the cluster's own.
    with made.databases_running(), django_db_blocker.unblock():
        yield made


@pytest.mark.drill
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_killed_primary_loses_nothing_acknowledged(cluster: Cluster) -> None:
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE TABLE written (number integer PRIMARY KEY)")
    stopping = threading.Event()
    writers = [Writer(cluster, number * 1_000_000, stopping) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    assert eventually(lambda: all(len(one.acknowledged) > 20 for one in writers), seconds=SECONDS)

    killed = cluster.primary()
    cluster.member(f"patroni-{killed}").kill()

    # Patroni decides whether a standby takes over or the primary comes back.
    before = [len(one.acknowledged) for one in writers]
    went_on = eventually(
        lambda: all(len(one.acknowledged) > count + 20 for one, count in zip(writers, before, strict=True)),
        seconds=SECONDS,
    )
    stopping.set()
    for writer in writers:
        writer.join()
    assert went_on
    assert cluster.primary() is not None
    with psycopg.connect(cluster.url("postgres")) as connection:
        stored = {row[0] for row in connection.execute("SELECT number FROM written")}
    assert set().union(*(one.acknowledged for one in writers)) <= stored


def test_balancer_has_the_rules_that_are_shipped(tmp_path: Path) -> None:
    shipped = (Path(settings.BASE_DIR) / "deploy/haproxy/haproxy.cfg").read_text()
    path = tmp_path / "haproxy.cfg"

    text = haproxy(
        [NODE], [WebAddress("web-1", 8000)], host="127.0.0.1", postgres=5000, web=80, shipped=shipped
    )

    path.write_text(text)
    said = output_of(program("haproxy"), "-c", "-f", str(path))
    _, _, tls = shipped.partition("frontend tls\n")
    rules = [
        line for line in tls.splitlines() if line.strip().startswith(("acl ", "http-", "balance ", "hash-"))
    ]
    assert rules
    assert [rule for rule in rules if rule not in text] == [
        rule for rule in rules if "X-Forwarded-Proto https" in rule or rule.strip().startswith(CAPS)
    ]
    assert "tune.bufsize 65536" in text
    assert "server node-1 10.0.0.1:5432 check port 8008" in text
    assert text.count("    server web-1 127.0.0.1:8000 check\n") == 1
    assert "WARNING" not in said


def test_commits_wait_for_a_standby() -> None:
    passwords = dict.fromkeys(("superuser", "replication", "rewind"), "secret")

    text = patroni(NODE, [NODE], data=Path("/data"), programs=Path("/bin"), passwords=passwords)

    assert '"synchronous_mode": true' in text
    assert '"fsync": "on"' in text
