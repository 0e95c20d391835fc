"""What a web process does before its first request."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.db import connections

from compliance.serving import startup

NOWHERE = {
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "BROKER_URL": "redis://127.0.0.1:1/0",
    "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
    "TEST_DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
    "PKCS11_HOST_FOLDER": "/nowhere",
}
START = """
import sys
from time import monotonic
from compliance.serving.application import application
from compliance.core import environments, tasks
from django.urls import resolve
began = monotonic()
application.fast_path().warm()
application.startup.begin_process()
application.startup.begin_thread()
assert monotonic() - began < 30, "the start was held up"
loaded = set(sys.modules)
with environments.use(environments.Environment.LIVE):
    tasks.enqueue("tests.note")
resolve("/v1/agents")
assert not sys.modules.keys() - loaded, sys.modules.keys() - loaded
"""


@pytest.mark.django_db
def test_thread_is_connected() -> None:
    def is_connected() -> bool:
        startup.begin_thread()
        connection = connections["default"]
        try:
            return connection.connection is not None and connection.is_usable()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(is_connected).result()


def test_start_waits_for_nothing_that_is_away_and_the_first_message_loads_nothing() -> None:
    """In a process of its own, whose database, broker and key service were never there."""
    ended = subprocess.run(
        [sys.executable, "-c", START],
        env={**os.environ, **NOWHERE},
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
