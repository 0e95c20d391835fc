"""Rate limits hold over processes, threads and entrances, with Redis and without it."""

import asyncio
import importlib.util
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
from pytest_django.fixtures import Settings

from compliance.api import rate_limits
from compliance.api.rate_limits import Caller, RateLimit
from compliance.core.identifiers import new_id
from compliance.stores import redis
from compliance.tests.looped import opened
from compliance.tests.waiting import eventually

BUCKET = "tried"


def another_process() -> ModuleType:
    """The module with a memory of its own."""
    spec = importlib.util.find_spec("compliance.api.rate_limits")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def caller() -> str:
    return str(new_id())


@pytest.fixture
def limit(settings: Settings) -> Callable[[int], None]:
    """Sets the limit of the bucket."""

    def set_limit(value: int) -> None:
        settings.RATE_LIMITS = {**settings.RATE_LIMITS, BUCKET: value}

    return set_limit


def counted(caller: str) -> int:
    return int(redis.client().get(rate_limits._call(Caller(BUCKET, caller), 1, 0).total) or 0)


def entries(caller: str) -> int:
    return int(redis.client().llen(rate_limits._call(Caller(BUCKET, caller), 1, 0).log))


def let_through(process: ModuleType, caller: str, tries: int) -> int:
    return sum(process.hit(BUCKET, caller).allowed for _ in range(tries))


def all_at_once(calls: list[Callable[[], int]]) -> int:
    with ThreadPoolExecutor(len(calls)) as pool:
        return sum(pool.map(lambda call: call(), calls))


def hit_each(identities: Sequence[str]) -> list[RateLimit]:
    """In an event loop of its own."""

    async def play() -> list[RateLimit]:
        async with opened() as client:
            return await rate_limits.hit_each(client, [(Caller(BUCKET, one), 1) for one in identities])

    return asyncio.run(play())


def test_limit_holds_over_processes_and_threads(caller: str, limit: Callable[[int], None]) -> None:
    limit(400)
    processes = [rate_limits, another_process(), another_process()]

    allowed = all_at_once([
        lambda process=process: let_through(process, caller, 100)  # type: ignore[misc]
        for process in processes
        for _ in range(3)
    ])  # fmt: skip

    assert allowed == counted(caller) == 400


def test_batch_is_counted_whole_or_not_at_all(caller: str, limit: Callable[[int], None]) -> None:
    limit(100)
    first = rate_limits.hit(BUCKET, caller, cost=60)

    second = rate_limits.hit(BUCKET, caller, cost=60)
    third = rate_limits.hit(BUCKET, caller, cost=40)

    assert [one.allowed for one in (first, second, third)] == [True, False, True]
    assert (second.remaining, third.remaining, counted(caller)) == (40, 0, 100)


def test_however_many_are_counted_at_once_are_one_entry(caller: str, limit: Callable[[int], None]) -> None:
    limit(100_000)
    for cost in (1, 1_000, 20_000):
        rate_limits.hit(BUCKET, caller, cost=cost)

    assert (entries(caller), counted(caller)) == (3, 21_001)


def test_what_leaves_the_window_is_no_longer_counted(
    limit: Callable[[int], None], settings: Settings
) -> None:
    limit(100)
    settings.RATE_LIMIT_WINDOW_SECONDS = 1

    def is_first_hit_alone_forgotten() -> bool:
        """On a busy machine the second may have left the window, too."""
        caller = str(new_id())
        for cost in (30, 40):
            rate_limits.hit(BUCKET, caller, cost=cost)
            time.sleep(0.6)
        found = rate_limits.hit(BUCKET, caller, cost=50)
        return (found.allowed, found.remaining, counted(caller), entries(caller)) == (True, 10, 90, 2)

    assert eventually(is_first_hit_alone_forgotten)


def test_limit_holds_without_redis(caller: str, limit: Callable[[int], None], redis_is_down: None) -> None:
    limit(200)

    allowed = all_at_once([lambda: let_through(rate_limits, caller, 80) for _ in range(4)])

    assert allowed == 200


def test_requests_counted_together_are_judged_as_one_by_one(
    caller: str, limit: Callable[[int], None]
) -> None:
    limit(5)
    callers = [f"{caller}-{number}" for number in range(3)]
    asked = callers + callers[:1] * 6 + callers[1:]

    together = hit_each(asked)
    alone = [rate_limits.hit(BUCKET, f"{one}-alone") for one in asked]

    assert [one.allowed for one in together] == [one.allowed for one in alone]
    assert [one.remaining for one in together] == [one.remaining for one in alone]
    assert all(
        abs(ours.reset_at - theirs.reset_at) <= 1 for ours, theirs in zip(together, alone, strict=True)
    )
    assert not rate_limits.hit(BUCKET, callers[0]).allowed
    assert rate_limits.hit(BUCKET, callers[1]).remaining == 2


def test_both_entrances_count_the_same_caller(caller: str, limit: Callable[[int], None]) -> None:
    limit(3)

    found = [rate_limits.hit(BUCKET, caller), *hit_each([caller, caller]), rate_limits.hit(BUCKET, caller)]

    assert [(one.allowed, one.remaining) for one in found] == [(True, 2), (True, 1), (True, 0), (False, 0)]


def test_many_are_counted_by_a_redis_that_forgot_the_script_and_by_none(
    caller: str, limit: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(2)
    redis.client().script_flush()
    callers = [f"{caller}-{number}" for number in range(2)] * 3

    forgetful = hit_each(callers)
    monkeypatch.setattr(redis, "circuit", redis.make_circuit())
    redis.circuit.failed(redis.circuit.admit(), pause=60)
    absent = hit_each(callers)

    for found in (forgetful, absent):
        assert [one.allowed for one in found] == [True] * 4 + [False] * 2
        assert [one.remaining for one in found] == [1, 1, 0, 0, 0, 0]
