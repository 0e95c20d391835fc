"""The scheduler's lease: one process has it, and the next goes on where the last one ended."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from celery.beat import ScheduleEntry
from celery.schedules import schedule
from django.conf import settings
from django.db import connections

from compliance.core.clock import now
from compliance.core.tasks import app
from compliance.ops.models import SchedulerLease
from compliance.ops.scheduling import lease as leases
from compliance.ops.scheduling.lease import NAME, Lease
from compliance.ops.scheduling.scheduler import LeasedScheduler
from compliance.stores import redis, sql
from compliance.tests.nodes import node_environment
from compliance.tests.waiting import eventually

LONG = 120.0


def run_out() -> None:
    SchedulerLease.objects.update(held_until=now() - timedelta(seconds=1))


def test_lease_has_one_holder() -> None:
    first, second = Lease("one"), Lease("one")

    assert first.hold({}) == {}
    assert second.hold({}) is None
    assert (first.is_held, second.is_held) == (True, False)
    assert first.hold({}) == {}
    assert Lease("another").hold({}) == {}


def test_next_holder_learns_what_was_sent() -> None:
    first, second = Lease("one"), Lease("one")
    first.hold({"a": 1.0, "b": 1.0})
    first.hold({"b": 2.0})
    run_out()

    assert second.hold({"c": 3.0}) == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert first.hold({"a": 9.0}) is None
    assert not first.is_held
    assert SchedulerLease.objects.get(name="one").last_runs == {"a": 1.0, "b": 2.0, "c": 3.0}


def test_holder_that_comes_back_knows_of_what_others_sent_meanwhile() -> None:
    first, second = Lease("one"), Lease("one")
    first.hold({"a": 1.0})
    run_out()
    second.hold({"a": 50.0})
    run_out()

    assert first.hold({"a": 2.0, "b": 3.0}) == {"a": 50.0, "b": 3.0}
    first.give_up({"a": 4.0})
    assert SchedulerLease.objects.get(name="one").last_runs == {"a": 50.0, "b": 3.0}


def test_clock_that_was_ahead_delays_no_successor() -> None:
    first, second = Lease("one"), Lease("one")
    first.hold({})
    first.hold({"a": now().timestamp() + 86_400.0})
    run_out()

    found = second.hold({})

    assert found is not None
    assert 0 < found["a"] <= now().timestamp() + 1


def test_lease_that_is_given_up_is_free_at_once() -> None:
    first, second = Lease("one"), Lease("one")
    first.hold({})

    first.give_up({"a": 5.0})

    assert not first.is_held
    assert second.hold({}) == {"a": 5.0}
    first.give_up({"a": 9.0})
    assert first.hold({}) is None


@pytest.mark.skipif(bool(settings.DATABASES_DIRECT), reason="a pooler has other connections")
def test_lost_connection_costs_no_lease(committed: None) -> None:
    lease = Lease(f"lost-{uuid4()}"[:32])
    lease.hold({"a": 1.0})
    ((pid,),) = sql.query("SELECT pg_backend_pid()")
    with psycopg.connect(**connections["default"].get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])

    assert lease.hold({"b": 2.0}) is None

    assert lease.is_held
    assert lease.hold({"b": 2.0}) == {"a": 1.0, "b": 2.0}


def test_entry_that_a_clock_ahead_has_sent_is_not_waited_for() -> None:
    beat, ahead = LeasedScheduler(app), now() + timedelta(days=1)
    beat.schedule["hourly"] = ScheduleEntry(
        "hourly", "tests.nothing", last_run_at=ahead, schedule=schedule(timedelta(hours=1)), app=app
    )

    beat.tick()

    found = beat.schedule["hourly"].last_run_at
    assert found is not None
    assert found <= now()
    beat.close()


@contextmanager
def scheduler(folder: Path, name: str) -> Iterator["subprocess.Popen[bytes]"]:
    """`celery beat`, with messages of a service of its own that no worker takes."""
    command = [sys.executable, "-m", "celery", "-A", "compliance.celery", "beat", "--pidfile", ""]
    environment = node_environment() | {"SERVICE_NAME": name, "LOG_LEVEL": "INFO"}
    environment |= {"DATABASE_AUDITOR": settings.DATABASE_AUDITOR}
    with (folder / f"{uuid4()}.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(LONG)


@pytest.mark.drill
@pytest.mark.slow
def test_two_schedulers_send_nothing_twice_and_one_takes_over(committed: None, tmp_path: Path) -> None:
    name, overdue = f"beat{uuid4().hex[:8]}", "delegation.forget_issued@live"
    ago = (now() - timedelta(hours=2)).timestamp()
    free = {"holder": uuid4(), "held_until": now() - timedelta(hours=2), "last_runs": {overdue: ago}}
    SchedulerLease.objects.update_or_create(name=NAME, defaults=free)

    def messages() -> list[Any]:
        found: Any = redis.broker().lrange(f"{name}:celery:celery", 0, -1)
        return [json.loads(message)["headers"] for message in reversed(found)]

    def senders() -> list[str]:
        """Who sent, in order, each once for a row of messages."""
        return [origin for origin, _ in groupby(message["origin"] for message in messages())]

    def sent(entry: str) -> int:
        task, _, environment = entry.partition("@")
        return sum((one["task"], one["service_environment"]) == (task, environment) for one in messages())

    with scheduler(tmp_path, name) as first, scheduler(tmp_path, name) as second:
        assert eventually(lambda: sent("auditlog.seal@live") > 3, seconds=LONG)
        by_pid = {first.pid: first, second.pid: second}
        (holder,) = senders()
        killed = by_pid[int(holder.split("@")[0].removeprefix("gen"))]
        killed.kill()
        killed.wait(LONG)
        before = len(messages())
        assert eventually(lambda: len(senders()) == 2 and len(messages()) > before + 3, seconds=LONG)
        heir = senders()[1]
        with scheduler(tmp_path, name):
            before = len(messages())
            assert eventually(lambda: len(messages()) > before + 5, seconds=LONG)

    assert senders()[:2] == [holder, heir]
    assert len(senders()) <= 3, "two schedulers sent at the same time"
    assert sent(overdue) == 1
    assert SchedulerLease.objects.get(name=NAME).held_until <= now() + timedelta(seconds=leases.LEASE_SECONDS)
    redis.broker().delete(f"{name}:celery:celery")
