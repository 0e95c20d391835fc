"""The peers: PostgreSQL alone stores what the service stored, whatever is in it; plain Django starts."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import httpx
import psycopg
import pytest
from django.db import connections

from bench.harness import web
from bench.ingest.rates import in_words
from bench.rulers import copying, tables
from bench.rulers.pgbench import BATCH, PgBench
from bench.rulers.rows import StoredRow
from compliance.localdev.ports import free_port
from compliance.localdev.servers import processes
from compliance.stores.database_owner import as_owner

ID = "01a1fad5-2662-7348-86ea-8ffb2ba48a5c"
AWKWARD = {"tool": "o'brien's", "url": "https://a:b@c/:tool0", "path": "C:\\temp\t::x", "n": 17, "is": True}
ROW = StoredRow(
    tenant_id=ID,
    agent_id=ID,
    action_type="api_call",
    risk_score="0.05",
    risk_band="low",
    details=json.dumps(AWKWARD, separators=(",", ":")),
    session_id="bench-1",
    reasons='[{"name":"tool","weight":0.5,"expected":"known:one","observed":"it\'s new"}]',
    model_version="2.2",
)
ROWS = [replace(ROW, session_id=f"bench-{number}") for number in range(BATCH)]


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


def stored(url: str) -> tuple[int, set[tuple[str, ...]]]:
    """How many rows the ruler stored, and what is in them."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT count(*), action_type, risk_band, details::text, reasons::text, model_version "
            "FROM ruler_pgbench GROUP BY 2, 3, 4, 5, 6"
        ).fetchall()
        connection.execute("TRUNCATE ruler_pgbench")
    return sum(row[0] for row in found), {row[1:] for row in found}


def test_each_way_stores_the_rows_of_the_service(url: str) -> None:
    ruler = PgBench(url, 18, ROWS)

    ruler.single(2, 1)
    singles, kinds = stored(url)
    ruler.batch(1, 1)
    batched, kinds_of_batches = stored(url)
    copied = copying.copied(url, ruler.batches, 0.1)
    copies, kinds_of_copies = stored(url)

    assert singles
    assert batched
    assert batched % BATCH == copies % BATCH == 0
    assert copied
    assert kinds == kinds_of_batches == kinds_of_copies
    assert [(json.loads(kind[2]), json.loads(kind[3])) for kind in kinds] == [
        (AWKWARD, json.loads(ROW.reasons))
    ]


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


def test_report_names_each_way_and_the_share_of_it() -> None:
    lines = in_words({"service": 5_000, "pgbench": 20_000, "COPY": 25_000, "generated": 50_000})

    assert [line.rpartition(", ")[2] for line in lines] == [
        "the service 25% of it",
        "the service 20% of it",
        "the service 10% of it",
    ]
    assert "generated inside PostgreSQL" in lines[2]
