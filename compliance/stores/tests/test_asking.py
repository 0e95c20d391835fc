"""Asking PostgreSQL and Redis from a thread and from the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
import uvloop
from django.core.exceptions import SynchronousOnlyOperation
from django.db import OperationalError
from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import asking, redis
from compliance.stores.asking import Asker, LoopAsker, ThreadAsker
from compliance.stores.async_postgres import Query
from compliance.stores.redis import Command
from tenancy.models import Tenant

pytestmark = pytest.mark.usefixtures("committed")
Work = Callable[[Asker], Awaitable[Any]]
Run = Callable[[Any], Any]


def in_loop(*works: Work) -> list[Any]:
    """The outcomes of the works, or what they raised, done one after the other in one event loop."""

    async def scene() -> list[Any]:
        asker = LoopAsker(Environment.LIVE)
        try:
            with environments.use(Environment.LIVE):
                return [await found(asker, one) for one in works]
        finally:
            await asker.close()

    async def found(asker: LoopAsker, work: Work) -> Any:
        try:
            return await asker.run(work)
        except OperationalError as error:
            return error

    return uvloop.run(scene())


@pytest.fixture(params=["thread", "loop"])
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "loop":
        return lambda work: in_loop(work)[0]
    return lambda work: asking.run(work(ThreadAsker()))


def doubling(number: int, name: str) -> Work:
    """Double a number in the database, twice, and set a name in Redis unless it is there."""

    async def work(asker: Asker) -> tuple[int, Any]:
        (rows,), answers = await asker.ask([Query("SELECT 2 * $1::int", [number])])
        assert answers == []
        (more, others), answers = await asker.ask(
            [Query("SELECT 2 * $1::int", [rows[0][0]]), Query("SELECT 1 WHERE false", [])],
            [("SET", name, b"", "NX", "PX", 60_000), ("GET", name)],
        )
        assert others == []
        return more[0][0], answers

    return work


def test_work_ends_with_its_outcome(run: Run) -> None:
    name = f"asking:{uuid4()}"

    number, (is_new, value) = run(doubling(3, name))

    assert (number, value) == (12, b"")
    assert is_new is not None
    assert run(doubling(4, name)) == (16, [None, b""])


def test_rows_come_while_redis_is_away(run: Run, redis_is_down: None) -> None:
    number, answers = run(doubling(3, "asking"))

    assert number == 12
    assert isinstance(answers, RedisError)


def test_work_that_waits_for_anything_else_is_refused_in_a_thread() -> None:
    async def work(asker: Asker) -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for an event loop"):
        asking.run(work(ThreadAsker()))


def test_connection_that_the_server_ended_is_replaced() -> None:
    name = f"asking:{uuid4()}"

    async def ending(asker: Asker) -> None:
        redis.client().client_kill_filter(_type="normal", skipme=True)

    found = in_loop(doubling(1, name), ending, doubling(2, name))

    assert (found[0][0], found[2]) == (4, (8, [None, b""]))


def test_session_that_ends_takes_its_work_along_and_no_other() -> None:
    async def failing(asker: Asker) -> None:
        await asker.ask([Query("SELECT pg_terminate_backend(pg_backend_pid())", [])], [("GET", "asking")])

    found = in_loop(failing, doubling(1, f"asking:{uuid4()}"))

    assert isinstance(found[0], OperationalError)
    assert found[1][0] == 4


@pytest.mark.parametrize(
    ("commands", "error"), [([], SynchronousOnlyOperation), ([("GET", "asking")], RuntimeError)]
)
def test_work_that_sent_commands_is_not_done_again(commands: list[Command], error: type[Exception]) -> None:
    async def using_the_orm(asker: Asker) -> int:
        await asker.ask(commands=commands)
        return Tenant.objects.count()

    with pytest.raises(error):
        in_loop(using_the_orm)
