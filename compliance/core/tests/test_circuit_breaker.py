"""The circuit breaker: refusal, probes, recovery."""

import time

import pytest

from compliance.core.circuit_breaker import CircuitBreaker

PAUSE = 0.05


class Refused(Exception):
    """The breaker's refusal; its argument is the seconds left."""


@pytest.fixture
def breaker() -> CircuitBreaker:
    return CircuitBreaker(Refused, failures=(OSError,), first_pause=PAUSE, longest_pause=2 * PAUSE)


def fail(breaker: CircuitBreaker) -> None:
    with pytest.raises(OSError, match="away"), breaker.guarding():
        raise OSError("away")


def test_calls_pass_until_one_fails(breaker: CircuitBreaker) -> None:
    with breaker.guarding():
        pass

    fail(breaker)

    assert breaker.is_open
    with pytest.raises(Refused) as refused, breaker.guarding():
        pass
    assert 0 < refused.value.args[0] <= PAUSE


def test_one_probe_is_let_through_after_the_pause(breaker: CircuitBreaker) -> None:
    fail(breaker)
    time.sleep(PAUSE)

    breaker.admit()

    with pytest.raises(Refused):
        breaker.admit()


def test_success_lets_all_calls_through(breaker: CircuitBreaker) -> None:
    fail(breaker)
    time.sleep(PAUSE)

    with breaker.guarding():
        pass

    assert not breaker.is_open
    for _ in range(3):
        breaker.admit()


def test_pause_doubles_up_to_the_longest(breaker: CircuitBreaker) -> None:
    waits = []
    for _ in range(4):
        breaker.failed(breaker._period)
        with pytest.raises(Refused) as refused:
            breaker.admit()
        waits.append(refused.value.args[0])

    assert PAUSE < waits[1] <= 2 * PAUSE
    assert PAUSE < waits[3] <= 2 * PAUSE


def test_caller_may_ask_for_a_longer_pause(breaker: CircuitBreaker) -> None:
    breaker.failed(breaker.admit(), pause=60)

    with pytest.raises(Refused) as refused:
        breaker.admit()

    assert refused.value.args[0] > 50


def test_failures_of_calls_admitted_together_count_once(breaker: CircuitBreaker) -> None:
    tickets = [breaker.admit() for _ in range(10)]

    for ticket in tickets:
        breaker.failed(ticket)
    time.sleep(PAUSE)

    assert breaker.admit() is not None


def test_other_errors_do_not_count(breaker: CircuitBreaker) -> None:
    with pytest.raises(ValueError, match="bad"), breaker.guarding():
        raise ValueError("bad")

    assert not breaker.is_open


def test_call_may_name_its_own_failures(breaker: CircuitBreaker) -> None:
    with pytest.raises(ValueError, match="bad"), breaker.guarding(gone=(ValueError,)):
        raise ValueError("bad")

    assert breaker.is_open
