"""Requests counted ahead: the limit holds over all processes, and what is not needed is given back."""

import asyncio
import importlib.util
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from types import ModuleType

import pytest
from pytest_django.fixtures import Settings

from compliance import redis
from compliance.api import rate_limits
from compliance.identifiers import new_id

BUCKET = "ahead"


def another_process() -> ModuleType:
    """The module with leases of its own."""
    spec = importlib.util.find_spec("compliance.api.rate_limits")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def caller() -> str:
    return str(new_id())


def counted(caller: str) -> int:
    """How many stand in the window, reserved ones among them."""
    return int(redis.client().get(f"{rate_limits._name(BUCKET, caller)}:total") or 0)


def entries(caller: str) -> int:
    return int(redis.client().llen(f"{rate_limits._name(BUCKET, caller)}:log"))


def let_through(process: ModuleType, caller: str, limit: int, tries: int) -> int:
    verdicts = [process.hit(BUCKET, caller, limit=limit, ahead=True) for _ in range(tries)]
    return sum(verdict.allowed for verdict in verdicts)


def all_at_once(calls: list[Callable[[], int]]) -> int:
    with ThreadPoolExecutor(len(calls)) as pool:
        return sum(pool.map(lambda call: call(), calls))


def hit_each(bucket: str, identities: Sequence[str], *, limit: int) -> list[rate_limits.Verdict]:
    """In an event loop of its own."""

    async def play() -> list[rate_limits.Verdict]:
        script = rate_limits.loop_script()
        try:
            return await rate_limits.hit_each(script, bucket, identities, limit=limit)
        finally:
            script.close()

    return asyncio.run(play())


@pytest.mark.parametrize("limit", [1, 3, 19])
def test_small_limits_are_exact(caller: str, limit: int) -> None:
    processes = [rate_limits, another_process()]

    allowed = [processes[number % 2].hit(BUCKET, caller, limit=limit, ahead=True) for number in range(40)]

    assert [verdict.allowed for verdict in allowed] == [True] * limit + [False] * (40 - limit)
    assert [verdict.remaining for verdict in allowed[:limit]] == list(reversed(range(limit)))


def test_limit_holds_over_processes_and_threads(caller: str) -> None:
    limit, processes = 400, [rate_limits, another_process(), another_process()]

    allowed = all_at_once([
        lambda process=process: let_through(process, caller, limit, 100)  # type: ignore[misc]
        for process in processes
        for _ in range(3)
    ])  # fmt: skip

    assert allowed <= limit
    assert allowed >= limit - len(processes) * limit // rate_limits.LARGEST_SHARE
    assert counted(caller) <= limit


def test_caller_that_goes_slowly_is_let_through_to_the_last(caller: str) -> None:
    assert let_through(rate_limits, caller, 100, 150) == 100


def test_unused_reservations_are_given_back(caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "LEASE_SECONDS", 0.2)
    used = let_through(rate_limits, caller, 1000, 60)
    assert counted(caller) > used
    time.sleep(0.25)

    # The first gives back what was not used, and reserves as before; in silence the next reserves little.
    rate_limits.renew(BUCKET, caller, limit=1000)
    time.sleep(0.25)
    rate_limits.renew(BUCKET, caller, limit=1000)

    assert used <= counted(caller) <= used + 1 + 1000 // rate_limits.FIRST_SHARE


def test_request_that_comes_to_nothing_is_not_counted(caller: str) -> None:
    rate_limits.hit(BUCKET, caller, limit=1000, ahead=True)
    first = rate_limits.take(BUCKET, caller)
    rate_limits.give_back(BUCKET, caller)

    again = rate_limits.take(BUCKET, caller)

    assert first is not None
    assert again is not None
    assert again.remaining == first.remaining


def test_renewal_counts_what_is_let_through_meanwhile(caller: str) -> None:
    allowed = let_through(rate_limits, caller, 10_000, 200)
    rate_limits.renew(BUCKET, caller, limit=10_000)
    # Enough is reserved, and so little of it taken, that most of it goes back.
    pause = 0.3

    redis.client().client_pause(int(pause * 1000))
    with ThreadPoolExecutor(1) as pool:
        renewed = pool.submit(rate_limits.renew, BUCKET, caller, limit=10_000)
        time.sleep(pause / 3)
        while rate_limits.take(BUCKET, caller) is not None:
            allowed += 1
        assert not renewed.done()
    renewed.result()

    assert allowed <= counted(caller)


def test_no_more_is_let_through_than_is_counted(caller: str) -> None:
    limit, is_over = 20_000, Event()

    def renew() -> int:
        while not is_over.is_set():
            if rate_limits.claim_renewal(BUCKET, caller):
                rate_limits.renew(BUCKET, caller, limit=limit)
            time.sleep(0.001)
        return 0

    def bursts() -> int:
        allowed = 0
        until = time.monotonic() + 1
        while time.monotonic() < until:
            allowed += let_through(rate_limits, caller, limit, 40)
            time.sleep(0.004)
        is_over.set()
        return allowed

    allowed = all_at_once([renew, bursts, bursts])

    assert allowed <= counted(caller) <= allowed + 2 * limit // rate_limits.LARGEST_SHARE


def test_reservation_is_given_back_once_by_however_many(caller: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "LEASE_SECONDS", 0.05)
    barrier, allowed = Barrier(6), 0

    def after_the_lease() -> int:
        barrier.wait()
        return let_through(rate_limits, caller, 10_000, 1)

    for _ in range(15):
        allowed += let_through(rate_limits, caller, 10_000, 30)
        time.sleep(0.06)
        allowed += all_at_once([after_the_lease] * 6)

    assert allowed <= counted(caller)
    assert counted(caller) <= allowed + 10_000 // rate_limits.LARGEST_SHARE


def test_batch_is_counted_whole_or_not_at_all(caller: str) -> None:
    first = rate_limits.hit(BUCKET, caller, limit=100, cost=60)

    second = rate_limits.hit(BUCKET, caller, limit=100, cost=60)
    third = rate_limits.hit(BUCKET, caller, limit=100, cost=40)

    assert [verdict.allowed for verdict in (first, second, third)] == [True, False, True]
    assert (second.remaining, third.remaining, counted(caller)) == (40, 0, 100)


def test_however_many_are_counted_at_once_are_one_entry(caller: str) -> None:
    for cost in (1, 1_000, 20_000):
        rate_limits.hit(BUCKET, caller, limit=100_000, cost=cost)

    assert (entries(caller), counted(caller)) == (3, 21_001)


def test_what_leaves_the_window_is_no_longer_counted(caller: str, settings: Settings) -> None:
    settings.RATE_LIMIT_WINDOW_SECONDS = 1
    for cost in (30, 40):
        rate_limits.hit(BUCKET, caller, limit=100, cost=cost)
        time.sleep(0.6)

    verdict = rate_limits.hit(BUCKET, caller, limit=100, cost=50)

    assert (verdict.allowed, verdict.remaining, counted(caller), entries(caller)) == (True, 10, 90, 2)


def test_limit_holds_without_redis(caller: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(redis, "circuit", redis.Circuit())
    redis.client.cache_clear()

    allowed = all_at_once([lambda: let_through(rate_limits, caller, 200, 80) for _ in range(4)])

    redis.client.cache_clear()
    assert 190 <= allowed <= 200


def test_reservation_serves_while_redis_is_away(
    caller: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_through(rate_limits, caller, 1000, 10)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(redis, "circuit", redis.Circuit())
    redis.client.cache_clear()

    verdicts = [rate_limits.hit(BUCKET, caller, limit=1000, ahead=True) for _ in range(50)]

    redis.client.cache_clear()
    assert all(verdict.allowed for verdict in verdicts)


def test_many_counted_together_are_judged_as_one_by_one(caller: str) -> None:
    callers = [f"{caller}-{number}" for number in range(3)]
    asked = callers + callers[:1] * 6 + callers[1:]

    together = hit_each("together", asked, limit=5)
    alone = [rate_limits.hit("alone", one, limit=5) for one in asked]

    assert [one.allowed for one in together] == [one.allowed for one in alone]
    assert [one.remaining for one in together] == [one.remaining for one in alone]
    assert all(
        abs(ours.reset_at - theirs.reset_at) <= 1 for ours, theirs in zip(together, alone, strict=True)
    )
    assert not rate_limits.hit("together", callers[0], limit=5).allowed
    assert rate_limits.hit("together", callers[1], limit=5).remaining == 2


def test_many_are_counted_by_a_redis_that_forgot_the_script_and_by_none(
    caller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.client().script_flush()
    callers = [f"{caller}-{number}" for number in range(2)] * 3

    forgetful = hit_each(BUCKET, callers, limit=2)
    monkeypatch.setattr(redis.circuit, "_closed_at", float("inf"))
    absent = hit_each(BUCKET, callers, limit=2)

    for verdicts in (forgetful, absent):
        assert [one.allowed for one in verdicts] == [True] * 4 + [False] * 2
        assert [one.remaining for one in verdicts] == [1, 1, 0, 0, 0, 0]
