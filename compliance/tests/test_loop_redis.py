"""Scripts asked from the event loop: every answer, and every way in which the server may fail to give one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from pytest_django.fixtures import Settings
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as Hung

from compliance import redis
from compliance.loop_redis import LoopScript
from compliance.tests.looped import opened

ECHO = redis.Script("if ARGV[1] == 'wrong' then return redis.call('nonsense') end return ARGV[1]")
LONG = redis.Script("return string.rep('x', tonumber(ARGV[1]))")


def play(script: redis.Script, scene: Callable[[LoopScript], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with opened(script) as looped:
            await scene(looped)

    asyncio.run(whole())


@pytest.fixture
def elsewhere(settings: Settings) -> Iterator[None]:
    """A server that isn't there."""
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis.client.cache_clear()
    yield
    redis.client.cache_clear()


def test_calls_are_answered_in_order_by_a_server_that_forgot_the_script() -> None:
    async def scene(script: LoopScript) -> None:
        for _ in range(2):
            assert await script.run((0, "a"), (0, 2), (0, b"\xff")) == [b"a", b"2", b"\xff"]
            redis.client().script_flush()

    play(ECHO, scene)


def test_answer_that_comes_in_pieces_is_whole() -> None:
    async def scene(script: LoopScript) -> None:
        assert await script.run((0, 3_000_000), (0, 5)) == [b"x" * 3_000_000, b"xxxxx"]

    play(LONG, scene)


def test_error_of_a_call_is_raised_and_the_connection_goes_on() -> None:
    async def scene(script: LoopScript) -> None:
        await script.run((0, "a"))
        link = script._link

        with pytest.raises(ResponseError):
            await script.run((0, "a"), (0, "wrong"))

        assert await script.run((0, "b")) == [b"b"]
        assert script._link is link

    play(ECHO, scene)


def test_connection_that_was_ended_meanwhile_is_opened_anew() -> None:
    async def scene(script: LoopScript) -> None:
        for pause in (0.0, 0.05):
            await script.run((0, "a"))
            redis.client().client_kill_filter(_type="normal", skipme=True)
            await asyncio.sleep(pause)

            assert await script.run((0, "b")) == [b"b"]

    play(ECHO, scene)


def test_server_that_hangs_is_waited_for_no_longer_than_set(settings: Settings) -> None:
    settings.REDIS_TIMEOUT_SECONDS = 0.1

    async def scene(script: LoopScript) -> None:
        await script.run((0, "a"))
        redis.client().client_pause(300)

        with pytest.raises(Hung):
            await script.run((0, "late"))

        await asyncio.sleep(0.4)
        # The late answer is nobody's.
        assert await script.run((0, "b")) == [b"b"]

    play(ECHO, scene)


def test_absent_server_is_said_to_be_unreachable(elsewhere: None) -> None:
    async def scene(script: LoopScript) -> None:
        with pytest.raises(Unreachable):
            await script.run((0, "a"))

    play(ECHO, scene)
