"""A server that hangs is given up, and nobody else waits for it."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from django.db import OperationalError, connection

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql
from compliance.stores.async_postgres import AsyncReader, Query
from compliance.stores.postgresql import bounded

pytestmark = pytest.mark.usefixtures("committed")

MY_PROCESS = "SELECT pg_backend_pid()"


@contextmanager
def standing_still(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def local(process: int) -> int:
    if not Path(f"/proc/{process}").exists():
        pytest.skip("PostgreSQL runs elsewhere")
    return process


@pytest.fixture
def process() -> int:
    """The server's process of this thread's connection."""
    ((number,),) = sql.query(MY_PROCESS)
    return local(number)


def test_hanging_server_is_given_up_and_replaced(process: int) -> None:
    with (
        standing_still(process),
        environments.limit_answers(0.5),
        pytest.raises(OperationalError, match=r"within 0\.5 s"),
    ):
        sql.query("SELECT 1")

    connection.close_if_unusable_or_obsolete()
    assert sql.query("SELECT 2") == [(2,)]


def test_repeated_read_waits_once_for_a_server_that_hangs(process: int) -> None:
    asked = 0

    def read() -> None:
        nonlocal asked
        asked += 1
        sql.query("SELECT 1")

    with (
        standing_still(process),
        environments.limit_answers(0.5),
        pytest.raises(OperationalError, match="within"),
    ):
        sql.read_again(read)

    assert asked == 1


def test_commit_that_gets_no_answer_is_no_success(process: int) -> None:
    def commit(stack: ExitStack) -> None:
        with environments.atomic():
            sql.query("SELECT 1")
            stack.enter_context(standing_still(process))

    with ExitStack() as stack, environments.limit_answers(0.5), pytest.raises(OperationalError):
        commit(stack)


def test_statement_that_may_take_longer_is_waited_for() -> None:
    with environments.limit_answers(0.05), environments.patient(timeout_seconds=30):
        assert len(sql.query("SELECT pg_sleep(0.5)")) == 1


def test_loop_gives_a_hanging_server_up_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "LOOP_SECONDS", 0.5)

    async def scene() -> None:
        reader = AsyncReader(Environment.LIVE)
        try:
            ((process,),) = await reader.rows(Query(MY_PROCESS, []))
            with standing_still(local(process)), pytest.raises(OperationalError, match=r"within 0\.5 s"):
                await reader.rows(Query("SELECT 1", []))
            assert await reader.rows(Query("SELECT 2", [])) == [(2,)]
        finally:
            await reader.close()

    asyncio.run(scene())
