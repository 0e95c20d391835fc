"""Tasks by the clock: each at its own times, sent by one process at a time."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import time_machine
from celery.beat import ScheduleEntry
from django.conf import settings
from django.db import connections
from hypothesis import given, strategies as st

from compliance import celery
from compliance.core.clock import now
from compliance.core.tasks import QUEUES, SENT_AT_HEADER, app
from compliance.stores import redis, sql
from compliance.tests.nodes import node_environment
from compliance.tests.waiting import eventually
from ops.models import SchedulerLease
from ops.scheduling import LEASE_SECONDS, LeasedScheduler, Staggered, staggered

LONG = 120.0
START = datetime(2026, 1, 1, tzinfo=UTC)
A_MINUTE = Staggered(60.0, 15.0)

quarters = st.integers(0, 40_000).map(lambda number: number / 4)
"""Seconds that a float holds exactly."""


def at(offset: float) -> datetime:
    return START + timedelta(seconds=offset)


def test_tasks_of_one_period_are_spread_evenly_over_it() -> None:
    found = staggered({"a": 60.0, "b": 60.0, "c": 60.0, "d": 3600.0})

    assert [found[name].offset for name in "abcd"] == [10.0, 30.0, 50.0, 1800.0]


def test_no_two_tasks_of_one_period_are_due_at_one_time() -> None:
    offsets = defaultdict(list)
    for entry in celery.schedule().values():
        offsets[entry["schedule"].seconds].append(entry["schedule"].offset)

    for period, alike in offsets.items():
        ordered = sorted(alike)
        gaps = [later - earlier for earlier, later in pairwise([*ordered, ordered[0] + period])]
        assert gaps == pytest.approx([period / len(alike)] * len(alike))


@given(
    last=quarters,
    waited=quarters,
    period=st.sampled_from([1.0, 5.0, 60.0, 3600.0]),
    share=st.sampled_from([0.0, 0.25, 0.75]),
)
def test_due_once_after_each_of_its_times(last: float, waited: float, period: float, share: float) -> None:
    times = Staggered(period, share * period)
    with time_machine.travel(at(last + waited), tick=False):
        due, pause = times.is_due(at(last))

    runs = (times.offset + number * period for number in range(-1, int((last + waited) / period) + 1))
    assert due == any(last < run <= last + waited for run in runs)
    assert 0 < pause <= period
    assert (last + waited + pause - times.offset) % period == 0


def test_time_that_a_clock_ahead_has_told_is_not_waited_for() -> None:
    with time_machine.travel(at(600.0), tick=False):
        assert A_MINUTE.is_due(at(86_400.0)) == pytest.approx((False, 15.0))


def test_a_clock_that_is_set_back_stops_no_task() -> None:
    beat = Beat(app)
    with time_machine.travel(at(3600.0), tick=False):
        assert beat.look() == 1
    with time_machine.travel(at(3599.0), tick=False):
        assert beat.look() == 1
        assert beat.tick() <= 1.0
    beat.close()


class Beat(LeasedScheduler):
    """A scheduler whose only task is due, and counts instead of being sent."""

    sent = 0

    def setup_schedule(self) -> None:
        self.schedule.clear()
        self.schedule["hourly"] = ScheduleEntry(
            "hourly", "tests.nothing", last_run_at=now(), schedule=Staggered(3600.0, 0.0), app=app
        )

    def apply_async(self, *args: Any, **kwargs: Any) -> Any:
        self.sent += 1

    def look(self) -> int:
        """Look at the schedule as often as its one task needs; return how often that was sent."""
        self._renewed_at = float("-inf")
        for _ in range(3):
            self.tick()
        return self.sent


def run_out() -> None:
    SchedulerLease.objects.update(held_until=now() - timedelta(seconds=1))


def beats() -> tuple[Beat, Beat]:
    run_out()
    return Beat(app), Beat(app)


def test_one_scheduler_sends_at_a_time() -> None:
    first, second = beats()

    assert (first.look(), second.look(), first.look()) == (1, 0, 1)
    assert (first.is_held, second.is_held) == (True, False)


def test_next_holder_sends_each_task_once_whatever_was_missed() -> None:
    first, second = beats()
    first.look()
    run_out()

    assert (second.look(), second.look(), first.look()) == (1, 1, 1)
    assert not first.is_held


def test_lease_that_is_given_up_is_free_at_once() -> None:
    first, second = beats()
    first.look()

    first.close()

    assert not first.is_held
    assert second.look() == 1
    first.close()
    assert second.look() == 1
    assert first.look() == 1


def test_lost_connection_costs_no_lease(committed: None) -> None:
    first, _ = beats()
    first.look()
    ((pid,),) = sql.query("SELECT pg_backend_pid()")
    with psycopg.connect(**connections["default"].get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])

    assert first.look() == 1

    assert first.is_held
    first.close()


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
    name, rare = f"beat{uuid4().hex[:8]}", "delegation.forget_issued"
    queues = [f"{name}:celery:{queue}" for queue in QUEUES]
    run_out()

    def messages() -> list[Any]:
        found: list[Any] = []
        for queue in queues:
            found += redis.broker().lrange(queue, 0, -1)
        sent = [json.loads(message)["headers"] for message in found]
        return sorted(sent, key=lambda message: float(message[SENT_AT_HEADER]))

    def senders() -> list[str]:
        """Who sent, in order, each once for a row of messages."""
        return [origin for origin, _ in groupby(message["origin"] for message in messages())]

    def sent(task: str) -> int:
        return sum(one["task"] == task for one in messages())

    with scheduler(tmp_path, name) as first, scheduler(tmp_path, name) as second:
        assert eventually(lambda: len(messages()) > 3 and bool(sent(rare)), seconds=LONG)
        by_pid = {first.pid: first, second.pid: second}
        (holder,) = senders()
        killed = by_pid[int(holder.split("@")[0].removeprefix("gen"))]
        killed.kill()
        killed.wait(LONG)
        before = len(messages())
        assert eventually(lambda: len(senders()) == 2 and len(messages()) > before + 3, seconds=LONG)
        heir = senders()[1]
        assert eventually(lambda: sent(rare) == 2, seconds=LONG), "the heir sends all once"
        with scheduler(tmp_path, name):
            before = len(messages())
            assert eventually(lambda: len(messages()) > before + 5, seconds=LONG)

    assert senders()[:2] == [holder, heir]
    assert len(senders()) <= 3, "two schedulers sent at the same time"
    assert sent(rare) == len(senders()), "once for each that took the lease"
    assert SchedulerLease.objects.get().held_until <= now() + timedelta(seconds=LEASE_SECONDS)
    redis.broker().delete(*queues)
