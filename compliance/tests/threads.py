"""Calls in threads with database connections of their own, for tests of concurrency."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

from django.db import connections

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import ServiceError
from compliance.tests.waiting import eventually

THREADS = 4


def in_thread(call: Callable[[], Any]) -> Any:
    """The call's result or service error, in the live environment; closes the thread's connections."""
    try:
        with environments.use(Environment.LIVE):
            return call()
    except ServiceError as error:
        return error
    finally:
        connections.close_all()


def at_once(call: Callable[[], Any]) -> list[Any]:
    """The results or service errors of the same call in `THREADS` threads that start together."""
    return all_at_once([call] * THREADS)


def all_at_once(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results or service errors of several calls in threads that start together."""
    together = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        together.wait(60)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(in_thread, partial(run, call)) for call in calls]]


def somebody_waits_for_a_lock() -> bool:
    """Return whether a session of the live database waits for a lock."""
    with connections["default"].cursor() as cursor:
        # Inside a transaction the view would otherwise stay as it was first seen.
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND datname = current_database()"
        )
        return bool(cursor.fetchone()[0])


async def until_somebody_waits_for_a_lock() -> None:
    """Let the event loop go on until then."""
    assert await asyncio.to_thread(in_thread, lambda: eventually(somebody_waits_for_a_lock))
