"""The shared lock and the call threads by themselves: time limits, precedence, recovery."""

import threading
import time

import pytest

from compliance.keys.pkcs11.call_threads import CallThreads, CallTimeout
from compliance.keys.pkcs11.module import LockTimeout, SharedLock
from compliance.tests.waiting import eventually

PATIENCE = 30.0
"""Seconds that a busy machine may need for what is due at once."""


def test_lock_is_exclusive_once_calls_have_returned() -> None:
    lock, entered, seen = SharedLock(), threading.Event(), []

    def call() -> None:
        with lock.shared(PATIENCE):
            entered.set()
            time.sleep(0.1)
            seen.append("call")

    thread = threading.Thread(target=call)
    thread.start()
    assert entered.wait(PATIENCE)
    lock.acquire_exclusive(PATIENCE)
    seen.append("exclusive")
    lock.release_exclusive()
    thread.join()

    assert seen == ["call", "exclusive"]


def test_lock_that_stays_shared_lets_calls_in_again() -> None:
    lock = SharedLock()

    with lock.shared(PATIENCE):
        with pytest.raises(LockTimeout):
            lock.acquire_exclusive(0.05)
        with lock.shared(0.05):
            assert lock.holders == 2


def test_exclusive_lock_refuses_calls_in_time() -> None:
    lock = SharedLock()

    lock.acquire_exclusive(PATIENCE)
    with pytest.raises(LockTimeout), lock.shared(0.05):
        pass
    lock.release_exclusive()
    with lock.shared(0.05):
        assert lock.holders == 1


def test_call_returns_results_and_errors() -> None:
    calls = CallThreads(size=1, name="test")

    assert calls.run(lambda: 7, timeout=PATIENCE) == 7
    with pytest.raises(ZeroDivisionError):
        calls.run(lambda: 1 // 0, timeout=PATIENCE)
    assert calls.run(lambda: 8, timeout=PATIENCE) == 8


def test_stuck_calls_cost_their_callers_only_the_deadline() -> None:
    calls, release = CallThreads(size=2, name="test"), threading.Event()

    for _ in range(2):
        with pytest.raises(CallTimeout):
            calls.run(release.wait, timeout=0.05)
    started = time.monotonic()
    with pytest.raises(CallTimeout, match="stuck"):
        calls.run(lambda: 7, timeout=10 * PATIENCE)

    assert time.monotonic() - started < PATIENCE
    release.set()
    assert eventually(lambda: not calls.is_blocked)
    assert calls.run(lambda: 7, timeout=PATIENCE) == 7


def test_stuck_call_does_not_take_a_thread_from_others() -> None:
    calls, release = CallThreads(size=2, name="test"), threading.Event()
    with pytest.raises(CallTimeout):
        calls.run(release.wait, timeout=0.05)
    together = threading.Barrier(2, timeout=PATIENCE)
    arrived: list[int] = []

    threads = [
        threading.Thread(target=lambda: arrived.append(calls.run(together.wait, timeout=2 * PATIENCE)))
        for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(arrived) == [0, 1]
    release.set()


def test_call_that_never_started_is_not_made_later() -> None:
    calls, begun, release, made = CallThreads(size=1, name="test"), threading.Event(), threading.Event(), []

    def block() -> None:
        begun.set()
        release.wait()

    blocker = threading.Thread(target=lambda: calls.run(block, timeout=2 * PATIENCE))
    blocker.start()
    assert begun.wait(PATIENCE)

    with pytest.raises(CallTimeout, match="taken"):
        calls.run(lambda: made.append(1), timeout=0.05)

    release.set()
    blocker.join()
    assert calls.run(lambda: 7, timeout=PATIENCE) == 7
    assert made == []
