"""Work in steps, run by a thread and by the event loop."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import uvloop
from django.core.exceptions import SynchronousOnlyOperation
from django.db import OperationalError
from redis.exceptions import RedisError

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import redis, trips
from compliance.stores.async_postgres import Query
from compliance.stores.redis_cluster import Command
from compliance.stores.trips import LoopTrips, Steps, Trip
from compliance.tenancy.models import Tenant

pytestmark = pytest.mark.usefixtures("committed")
Run = Callable[[Steps[Any]], Any]


def in_loop(*steps: Steps[Any]) -> list[Any]:
    """The outcomes of the steps, or what they raised, run one after the other in one event loop."""

    async def scene() -> list[Any]:
        looped = LoopTrips(Environment.LIVE)
        try:
            with environments.use(Environment.LIVE):
                return [await found(looped, one) for one in steps]
        finally:
            await looped.close()

    async def found(looped: LoopTrips, one: Steps[Any]) -> Any:
        try:
            return await looped.run(one)
        except OperationalError as error:
            return error

    return uvloop.run(scene())


@pytest.fixture(params=["thread", "loop"])
def run(request: pytest.FixtureRequest) -> Run:
    return trips.run if request.param == "thread" else lambda steps: in_loop(steps)[0]


def doubling(number: int, name: str) -> Steps[tuple[int, Any]]:
    """Double a number in the database, twice, and set a name in Redis unless it is there."""
    (rows,), answers = yield Trip([Query("SELECT 2 * $1::int", [number])])
    assert answers == []
    (more, others), answers = yield Trip(
        [Query("SELECT 2 * $1::int", [rows[0][0]]), Query("SELECT 1 WHERE false", [])],
        [("SET", name, b"", "NX", "PX", 60_000), ("GET", name)],
    )
    assert others == []
    return more[0][0], answers


def test_steps_end_with_their_outcome(run: Run) -> None:
    name = f"trip:{uuid4()}"

    number, (is_new, value) = run(doubling(3, name))

    assert (number, value) == (12, b"")
    assert is_new is not None
    assert run(doubling(4, name)) == (16, [None, b""])


def test_rows_come_while_redis_is_away(run: Run, redis_is_down: None) -> None:
    number, answers = run(doubling(3, "trip"))

    assert number == 12
    assert isinstance(answers, RedisError)


def test_connection_that_the_server_ended_is_replaced() -> None:
    name = f"trip:{uuid4()}"

    def ending() -> Steps[None]:
        redis.client().client_kill_filter(_type="normal", skipme=True)
        yield Trip()

    found = in_loop(doubling(1, name), ending(), doubling(2, name))

    assert (found[0][0], found[2]) == (4, (8, [None, b""]))


def test_session_that_ends_takes_its_steps_along_and_no_others() -> None:
    def failing() -> Steps[None]:
        yield Trip([Query("SELECT pg_terminate_backend(pg_backend_pid())", [])], [("GET", "trip")])

    found = in_loop(failing(), doubling(1, f"trip:{uuid4()}"))

    assert isinstance(found[0], OperationalError)
    assert found[1][0] == 4


@pytest.mark.parametrize(
    ("commands", "error"), [([], SynchronousOnlyOperation), ([("GET", "trip")], RuntimeError)]
)
def test_steps_that_sent_commands_are_not_run_again(commands: list[Command], error: type[Exception]) -> None:
    def using_the_orm() -> Steps[int]:
        yield Trip(commands=commands)
        return Tenant.objects.count()

    with pytest.raises(error):
        in_loop(using_the_orm())
