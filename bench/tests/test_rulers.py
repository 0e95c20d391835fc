"""The plain Django peer starts and stores events."""

import os
import subprocess
from collections.abc import Iterator

import httpx
import psycopg
import pytest
from django.db import connections

from bench.harness import web
from bench.rulers import tables
from compliance.localdev.ports import free_port
from compliance.localdev.servers import processes
from compliance.stores.database_owner import as_owner

ID = "01a1fad5-2662-7348-86ea-8ffb2ba48a5c"


@pytest.fixture
def url(django_db_setup: None) -> Iterator[str]:
    """A database with the rulers' tables."""
    with as_owner("default"):
        settings = connections["default"].settings_dict
    host, port, name = settings["HOST"], settings["PORT"], settings["NAME"]
    found = f"postgres://{settings['USER']}:{settings['PASSWORD']}@{host}:{port}/{name}"
    with psycopg.connect(found, autocommit=True) as connection:
        tables.make(connection)
    yield found
    with psycopg.connect(found, autocommit=True) as connection:
        for table in tables.NAMES:
            connection.execute(f"DROP TABLE {table}".encode())


def test_plain_django_starts(url: str) -> None:
    port = free_port()
    environment = os.environ | {
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "bench.rulers.plain.settings",
        "RULER_TENANT": ID,
    }
    event = {"agent_id": ID, "action_type": "api_call", "details": {}, "session_id": "bench-1"}
    with subprocess.Popen(web.plain_drf_command(port, workers="1", threads="2"), env=environment) as process:
        try:
            processes.wait_until(
                lambda: process.poll() is not None or web.answers(port, "/"), seconds=web.READY_SECONDS
            )
            answer = httpx.post(f"http://127.0.0.1:{port}/v1/events", json=event)
        finally:
            process.terminate()
            process.wait(10)
    assert answer.status_code == 201
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute("SELECT session_id FROM ruler_drf").fetchall()
    assert found == [("bench-1",)]
