"""Processes of the service behind PgBouncer in transaction mode, where clients share sessions."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
import requests
from django.conf import settings

from auditlog.models import PendingEntry
from certificates.tests.factories import make_authorities, make_certified_agent
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.localdev.servers.postgres import DatabaseRole
from compliance.stores import sql
from compliance.tests.browser.web_server import web_server
from compliance.tests.nodes import node_environment
from compliance.tests.pgbouncer import PgBouncer, keeps_prepared_statements, pgbouncer_program
from events.models import BehaviorEvent
from tenancy.tests.factories import make_key, make_tenant
from webhooks.tests.factories import make_webhook

PROGRAM = pgbouncer_program()
HIGH = {"action_type": "transaction_anomaly", "details": {"severity": "critical", "amount": 9e6}}

pytestmark = [
    pytest.mark.drill,
    pytest.mark.slow,
    pytest.mark.usefixtures("committed"),
    pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def pooled(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, str]]:
    """The variables of a process behind a pooler of two server connections for each database."""
    if PROGRAM is None:
        pytest.skip("PgBouncer is not installed")
    folder = Path(tmp_path_factory.mktemp("pooler"))
    own = node_environment()
    server = urlsplit(own["DATABASE_URL"])
    role = DatabaseRole(server.username or "", server.password or "")
    for parent in (folder, *folder.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    pooler = PgBouncer(folder / "pgbouncer", folder / "ports.json", server.port or 5432, [role], size=2)
    with django_db_blocker.unblock(), environments.use(Environment.LIVE):
        for name, value in settings.DATABASE_SESSION.items():
            sql.execute(f"ALTER ROLE CURRENT_USER SET {name} = '{value}'")
    pooler.start()
    try:
        found = {"DATABASE_PREPARED_STATEMENTS": str(keeps_prepared_statements(PROGRAM)).lower()}
        for name in ("DATABASE", "TEST_DATABASE"):
            found |= {f"{name}_URL": pooler.url(own[f"{name}_URL"]), f"{name}_DIRECT_URL": own[f"{name}_URL"]}
        yield found
    finally:
        pooler.stop()


@contextmanager
def session(pooled: Mapping[str, str]) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(pooled["DATABASE_URL"], autocommit=True, prepare_threshold=None) as connection:
        yield connection


def left_behind(pooled: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """What is wrong with the pooler's sessions: their role, their settings, and locks that they hold."""
    wanted = {name.casefold(): value for name, value in settings.DATABASE_SESSION.items()}
    with ExitStack() as stack:
        connections = [stack.enter_context(session(pooled)) for _ in range(2)]
        found = []
        for connection in connections:
            connection.execute("BEGIN")  # so that each has a session of its own
        for connection in connections:
            rows = connection.execute(
                "SELECT lower(name), setting FROM pg_settings WHERE lower(name) = ANY(%s)", [list(wanted)]
            ).fetchall()
            found += [row for row in rows if wanted[row[0]] != row[1]]
            found += connection.execute(
                "SELECT current_user, session_user WHERE current_user <> session_user"
            ).fetchall()
            found += connection.execute(
                "SELECT locktype, objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            ).fetchall()
    return found


def test_web_node_behind_a_pooler_serves_and_leaves_nothing_in_its_sessions(
    pooled: Mapping[str, str], tmp_path: Path
) -> None:
    make_authorities()
    tenant = make_tenant("Pooled")
    agents = [make_certified_agent(tenant, name=f"pooled {number}") for number in range(8)]
    halted = make_certified_agent(tenant, name="halted")
    headers = {"Authorization": f"Bearer {make_key(tenant)}"}

    with web_server(tmp_path, lambda _: pooled) as address, requests.Session() as client:

        def send(number: int) -> int:
            agent = agents[number % len(agents)]
            body = {"agent_id": str(agent.id), "action_type": "api_call", "details": {"tool": "t"}}
            return requests.post(f"{address}/v1/events", json=body, headers=headers, timeout=60).status_code

        with ThreadPoolExecutor(16) as pool:
            statuses = set(pool.map(send, range(160)))
        strikes = [
            client.post(
                f"{address}/v1/events", json={"agent_id": str(halted.id), **HIGH}, headers=headers, timeout=60
            ).status_code
            for _ in range(4)
        ]
        listed = client.get(f"{address}/v1/events?limit=20", headers=headers, timeout=60)
        created = client.post(
            f"{address}/v1/agents", json={"name": "x", "model_hash": "h"}, headers=headers, timeout=60
        )
        ready = client.get(f"{address}/health/ready", timeout=60).json()["checks"]

    assert statuses == {201}
    assert BehaviorEvent.objects.filter(tenant=tenant, action_type="api_call").count() == 160
    assert 201 in strikes
    assert (listed.status_code, len(listed.json()["data"])) == (200, 20)
    assert created.status_code == 201
    assert (ready["database_live"], ready["database_test"]) == ("ok", "ok")
    assert left_behind(pooled) == []


def test_tasks_behind_a_pooler_seal_and_hold_no_lock(pooled: Mapping[str, str]) -> None:
    make_webhook(make_tenant("Sealed"))
    make_certified_agent(make_tenant("Sealed too"))
    assert PendingEntry.objects.exists()
    script = (
        "import compliance.celery\n"
        "from auditlog import tasks\n"
        "from compliance.core.tasks import ENVIRONMENT_HEADER\n"
        "tasks.seal.apply(headers={ENVIRONMENT_HEADER: 'live'}, throw=True)\n"
    )
    environment = node_environment() | dict(pooled)

    for _ in range(2):
        command = [sys.executable, "-c", script]
        subprocess.run(command, env=environment, cwd=settings.BASE_DIR, timeout=120, check=True)

    assert not PendingEntry.objects.exists()
    assert left_behind(pooled) == []
