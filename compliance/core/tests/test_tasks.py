"""Tasks carry their environment and need no broker to be safe."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest
from celery.fixups.django import DjangoFixup
from django.conf import settings
from django.db import connections

from compliance import celery
from compliance.celery import PERIODS_SECONDS, schedule
from compliance.core import environments, tasks
from compliance.core.environments import Environment
from compliance.localdev.servers import supervisor
from compliance.stores import redis, sql

seen: list[str] = []
backends: list[int] = []


@tasks.task("tests.note")
def note() -> None:
    """Remember the environment it ran in."""
    seen.append(environments.current().value)


@tasks.task("tests.fails")
def fails() -> None:
    """Fail once it has remembered the environment it ran in."""
    note.run()
    raise LookupError(environments.current().value)


@tasks.task("tests.told")
def told() -> None:
    """Remember the connection that it has."""
    ((pid,),) = sql.query("SELECT pg_backend_pid()")
    backends.append(pid)


@pytest.fixture(autouse=True)
def outside_any_environment() -> Any:
    seen.clear()
    token = environments._current.set(None)
    yield
    environments._current.reset(token)


@pytest.mark.parametrize("environment", list(Environment))
def test_task_runs_in_the_environment_of_its_message(environment: Environment) -> None:
    note.apply(headers={tasks.ENVIRONMENT_HEADER: environment.value}, throw=True)

    assert seen == [environment.value]


def test_error_in_one_environment_does_not_keep_a_task_from_the_next() -> None:
    with pytest.raises(LookupError, match="test"):
        fails.apply(headers={tasks.ENVIRONMENT_HEADER: "live,test"}, throw=True)

    assert seen == ["live", "test"]


def test_message_without_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="not a valid Environment"):
        note.apply(throw=True)

    assert seen == []


def backend() -> int:
    """The process of PostgreSQL that a task of the live environment has."""
    told.apply(headers={tasks.ENVIRONMENT_HEADER: Environment.LIVE.value}, throw=True)
    return backends[-1]


@pytest.mark.skipif(bool(settings.DATABASES_DIRECT), reason="a pooler has other connections")
def test_worker_keeps_its_connections_from_task_to_task(committed: None) -> None:
    hooks = DjangoFixup(tasks.app).worker_fixup
    found = set()
    for _ in range(3):
        hooks.on_task_prerun(told)
        found.add(backend())
        hooks.on_task_postrun(told)

    assert len(found) == 1


@pytest.mark.skipif(bool(settings.DATABASES_DIRECT), reason="a pooler has other connections")
def test_connection_that_died_between_tasks_is_replaced(committed: None) -> None:
    lost = backend()
    with psycopg.connect(**connections["default"].get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [lost])

    assert backend() != lost


def test_worker_replaces_connections_when_they_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    for database in connections.settings.values():
        monkeypatch.setitem(database, "CONN_MAX_AGE", database["CONN_MAX_AGE"])
    former = {alias: database["CONN_MAX_AGE"] for alias, database in connections.settings.items()}

    celery._begin()

    found = {alias: database["CONN_MAX_AGE"] for alias, database in connections.settings.items()}
    assert (former["default"], found["default"]) == (None, celery.CONNECTION_SECONDS)
    assert (former["default_auditor"], found["default_auditor"]) == (0, 0)


def test_lost_broker_is_survived() -> None:
    """In a process of its own, whose broker was never there; nobody waits for it."""
    script = (
        "import time\n"
        "waits = []\n"
        "time.sleep = waits.append\n"
        "from compliance.celery import app\n"
        "from compliance.core import environments, tasks\n"
        "with environments.use(environments.Environment.LIVE):\n"
        "    is_lost = tasks.enqueue('tests.note') is False\n"
        "raise SystemExit(0 if is_lost and not waits else 1)"
    )
    nowhere = "redis://127.0.0.1:1/0"
    dead = {**os.environ, "REDIS_URL": nowhere, "BROKER_URL": nowhere}

    ended = subprocess.run(
        [sys.executable, "-c", script], env=dead, cwd=settings.BASE_DIR, timeout=30, check=False
    )

    assert ended.returncode == 0


def test_sweeps_run_over_both_environments() -> None:
    entries = schedule().values()

    named = {(entry["task"], entry["options"]["headers"][tasks.ENVIRONMENT_HEADER]) for entry in entries}
    assert named == {(task, "live,test") for task in PERIODS_SECONDS}


def test_every_scheduled_task_exists() -> None:
    assert set(PERIODS_SECONDS) | set(settings.CELERY_TASK_ROUTES) <= set(tasks.app.tasks)


PROMISED = (
    "auditlog.seal",
    "certificates.publish_crl",
    "certificates.publish_due_crls",
    "events.sweep_high_risk",
)


@pytest.mark.parametrize("name", PROMISED)
def test_what_is_promised_never_waits_behind_other_work(name: str) -> None:
    waiting = [f"{tasks._PREFIX}{queue}" for queue in tasks.QUEUES]
    redis.broker().delete(*waiting)
    with environments.use(Environment.LIVE):
        for slow in set(tasks.app.tasks) - set(settings.CELERY_TASK_ROUTES):
            tasks.enqueue(slow)
        tasks.enqueue(name)

    (first,) = redis.broker().lrange(waiting[1], 0, -1)
    redis.broker().delete(*waiting)

    assert orjson.loads(first)["headers"]["task"] == name


def _localdev() -> list[list[str]]:
    return list(supervisor.part_commands("", {"WEB_WORKERS": "1"}).values())


def _units() -> list[list[str]]:
    units = (Path(settings.BASE_DIR) / "deploy/systemd").glob("*worker.service")
    return [line.split() for unit in units for line in unit.read_text().splitlines() if "ExecStart=" in line]


@pytest.mark.parametrize("commands", [_localdev, _units])
def test_every_queue_has_a_worker_of_its_own(commands: Callable[[], list[list[str]]]) -> None:
    """The compose file and the chart have the units' commands, which their own tests compare."""
    taken = [command[command.index("-Q") + 1] for command in commands() if "-Q" in command]

    assert sorted(taken) == sorted(tasks.QUEUES)
