"""A release that expands is migrated while a database of a million events is written to.

The version before serves meanwhile. Its requests give up after 1 s of waiting for a lock, so that one which
waits longer fails.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID, uuid4

import psycopg
import pytest
import requests
from django.conf import settings
from django.db import connections
from psycopg import sql

from agents.models import Agent
from certificates.models import Certificate
from certificates.tests.factories import make_certified_agent
from compliance.tests.browser.web_server import web_server
from compliance.tests.migration_lint import findings
from compliance.tests.waiting import eventually
from tenancy.tests.factories import make_key, make_tenant

EVENTS = "events_behaviorevent"
ROWS = 1_000_000
WRITERS = 3
DAYS = 20
LONG = 300.0
INDEXES = """
SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = %s::regclass AND NOT indisprimary
"""
FILL = """
INSERT INTO events_behaviorevent (id, tenant_id, agent_id, action_type, risk_score, risk_band, occurred_at,
                                  received_at, details, session_id, chain_id, reasons, model_version)
SELECT (lpad(to_hex(moment), 12, '0') || '7' || substr(r, 1, 3) || '8' || substr(r, 4, 15))::uuid, %(tenant)s,
       (%(agents)s::uuid[])[1 + n %% cardinality(%(agents)s::uuid[])], 'api_call', 0.1, 'low',
       to_timestamp(moment / 1000.0), to_timestamp(moment / 1000.0), '{}', '', NULL, '[]', ''
FROM (SELECT (%(first)s + n * %(step)s::float8)::bigint AS moment, md5(random()::text) AS r, n
      FROM generate_series(0, %(rows)s - 1) AS n) AS made
"""
LOCKED = "A lock is held by another transaction"
NAMES = ("e001_columns", "e002_valid", "e003_index")
NO_LIMITS = {f"RATE_LIMIT_{name}": "10000000" for name in ("EVENTS", "KEY", "PUBLIC", "VERIFY")}

pytestmark = [pytest.mark.drill, pytest.mark.slow]


class Writer(threading.Thread):
    """Sends an agent's events one after the other, and looks at its certificate and its newest events."""

    def __init__(self, address: str, secret: str, agent: Agent, serial: str) -> None:
        super().__init__(daemon=True)
        self._address, self._agent, self._serial = address, str(agent.id), serial
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {secret}"
        self._stopping = threading.Event()
        self.acknowledged: list[UUID] = []
        self.failures: list[str] = []

    def run(self) -> None:
        body = {"agent_id": self._agent, "action_type": "api_call", "details": {"tool": "search"}}
        while not self._stopping.is_set():
            stored = self._ask("POST", "/v1/events", 201, json=body)
            if stored is not None:
                self.acknowledged.append(UUID(stored["id"]))
            self._ask("GET", f"/v1/events?agent_id={self._agent}&limit=5", 200)
            self._ask("GET", f"/v1/verify/{self._serial}", 200)

    def stop(self) -> None:
        self._stopping.set()
        self.join(LONG)
        self._session.close()

    def _ask(self, method: str, path: str, expected: int, **more: Any) -> Any:
        try:
            answer = self._session.request(method, f"{self._address}{path}", timeout=60, **more)
        except requests.RequestException as error:
            self.failures.append(f"{method} {path}: {error!r}")
            return None
        if answer.status_code != expected:
            self.failures.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
            return None
        return answer.json()["data"]


class Load:
    """Writers, and what they were answered so far."""

    def __init__(self, writers: list[Writer]) -> None:
        self.writers = writers

    @property
    def acknowledged(self) -> int:
        return sum(len(one.acknowledged) for one in self.writers)

    @property
    def failures(self) -> list[str]:
        return [failure for one in self.writers for failure in one.failures]

    def goes_on(self, more: int = 30) -> bool:
        """Return whether so many more events are acknowledged from now on."""
        goal = self.acknowledged + more
        return eventually(lambda: self.acknowledged >= goal or bool(self.failures), seconds=LONG)


class Migration:
    """`manage.py migrate` of the next release, and what it has said so far."""

    def __init__(self, address: str) -> None:
        environment = {
            **os.environ,
            "DATABASE_OWNER_URL": address,
            "DJANGO_SETTINGS_MODULE": "ops.tests.expanding_settings",
            "PYTHONUNBUFFERED": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", "migrate", "--noinput"],
            cwd=settings.BASE_DIR,
            env=environment | {"DATABASE_URL": at_database(os.environ["DATABASE_URL"], name_in(address))},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def said(self) -> str:
        return "".join(self._lines)

    def says(self, text: str) -> bool:
        over = self._process.poll
        return eventually(lambda: text in self.said or over() is not None, seconds=LONG) and text in self.said

    def result(self) -> int:
        try:
            code = self._process.wait(LONG)
        finally:
            self._process.kill()
            self._reader.join(LONG)
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout:
            self._lines.extend(self._process.stdout)


def name_in(address: str) -> str:
    return urlsplit(address).path.lstrip("/")


def at_database(address: str, name: str) -> str:
    return urlunsplit(urlsplit(address)._replace(path=f"/{name}"))


@contextmanager
def copy_of_live() -> Iterator[str]:
    """A copy of the tests' live database; yields its address for the owner."""
    source, name = connections["default"].settings_dict["NAME"], f"migrated_{uuid4().hex[:10]}"
    owner = os.environ["DATABASE_OWNER_URL"]
    connections.close_all()
    with psycopg.connect(at_database(owner, "postgres"), autocommit=True) as admin:
        made, original = sql.Identifier(name), sql.Identifier(source)
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(made, original))
        try:
            yield at_database(owner, name)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(made))


def fill(address: str, agents: list[Agent]) -> None:
    """A million events of the last weeks, the newest an hour old."""
    end = datetime.now(UTC) - timedelta(hours=1)
    given = {
        "tenant": agents[0].tenant_id,
        "agents": [one.id for one in agents],
        "first": int((end - timedelta(days=DAYS)).timestamp() * 1000),
        "step": DAYS * 86_400_000 / ROWS,
        "rows": ROWS,
    }
    with psycopg.connect(address) as connection:
        connection.execute("SET LOCAL synchronous_commit = off")
        # Built at once, indexes take a third of the time.
        indexes = connection.execute(INDEXES, [EVENTS]).fetchall()
        for name, _ in indexes:
            connection.execute(f"DROP INDEX {name}")
        connection.execute(FILL, given)
        for _, definition in indexes:
            connection.execute(definition.replace(" ON ONLY ", " ON "))
        connection.execute(f"ANALYZE {EVENTS}")


def one(connection: "psycopg.Connection[Any]", query: str, *given: Any) -> Any:
    found = connection.execute(query, given).fetchone()
    return None if found is None else found[0]


def test_lint_accepts_these_migrations() -> None:
    for name in NAMES:
        migration = import_module(f"ops.tests.expanding.{name}").Migration(name, "events")

        assert list(findings(migration)) == []


@pytest.mark.skipif("DATABASE_OWNER_URL" not in os.environ, reason="needs a role that makes databases")
def test_million_events_are_migrated_without_a_failed_or_lost_request(
    committed: None, tmp_path: Path
) -> None:
    tenant = make_tenant("Migrated under load")
    agents = [make_certified_agent(tenant, name=f"writer {number}") for number in range(WRITERS)]
    serials = [Certificate.objects.get(agent=agent).serial_number for agent in agents]
    secret = str(make_key(tenant))

    with copy_of_live() as address:
        fill(address, agents)
        service = {"DATABASE_URL": at_database(os.environ["DATABASE_URL"], name_in(address))}
        with (
            psycopg.connect(address) as blocker,
            web_server(tmp_path, lambda _: service | NO_LIMITS) as served,
        ):
            writers = [
                Writer(served, secret, agent, serial) for agent, serial in zip(agents, serials, strict=True)
            ]
            load = Load(writers)
            for writer in writers:
                writer.start()
            try:
                assert load.goes_on()
                # A reader of long ago: no column can be added before it ends.
                blocker.execute("SELECT 1 FROM events_behaviorevent LIMIT 1")
                migration = Migration(address)
                assert migration.says(LOCKED), migration.said
                # The migration lets others go first instead of making them wait behind it.
                assert load.goes_on()
                blocker.rollback()
                assert migration.says("Applying events.e003_index"), migration.said
                before_index = load.acknowledged
                assert migration.result() == 0, migration.said
                during_index = load.acknowledged - before_index
                assert load.goes_on()
            finally:
                for writer in writers:
                    writer.stop()

        assert load.failures == []
        assert during_index > 0
        with psycopg.connect(address) as connection:
            acknowledged = [event for writer in writers for event in writer.acknowledged]
            stored = "SELECT count(*) FROM events_behaviorevent WHERE id = ANY(%s)"
            assert one(connection, stored, acknowledged) == len(acknowledged)
            assert one(connection, "SELECT count(*) FROM events_behaviorevent WHERE weight = 1") >= ROWS
            valid = "SELECT bool_and(indisvalid) FROM pg_index WHERE indexrelid::regclass::text ~ 'weight'"
            assert one(connection, valid) is True
            checked = "SELECT bool_and(convalidated) FROM pg_constraint WHERE conname = %s"
            assert one(connection, checked, "events_weight_positive") is True
