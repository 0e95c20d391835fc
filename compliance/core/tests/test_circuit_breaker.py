"""The circuit breaker: refusal, probes, recovery."""

import pytest

from compliance.core import circuit_breaker
from compliance.core.circuit_breaker import CircuitBreaker

PAUSE = 2.0


class Refused(Exception):
    """The breaker's refusal; its argument is the seconds left."""


class Clock:
    """The time that the breaker sees; a test moves it."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(circuit_breaker, "monotonic", found)
    return found


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
    assert refused.value.args[0] == PAUSE


def test_one_probe_is_let_through_after_the_pause(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker)
    clock.now += PAUSE

    breaker.admit()

    with pytest.raises(Refused):
        breaker.admit()


def test_success_lets_all_calls_through(breaker: CircuitBreaker, clock: Clock) -> None:
    fail(breaker)
    clock.now += PAUSE

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

    assert waits == [PAUSE, 2 * PAUSE, 2 * PAUSE, 2 * PAUSE]


def test_caller_may_ask_for_a_longer_pause(breaker: CircuitBreaker) -> None:
    breaker.failed(breaker.admit(), pause=60)

    with pytest.raises(Refused) as refused:
        breaker.admit()

    assert refused.value.args[0] == 60


def test_failures_of_calls_admitted_together_count_once(breaker: CircuitBreaker, clock: Clock) -> None:
    tickets = [breaker.admit() for _ in range(10)]

    for ticket in tickets:
        breaker.failed(ticket)
    clock.now += PAUSE

    assert breaker.admit() is not None


def test_other_errors_do_not_count(breaker: CircuitBreaker) -> None:
    with pytest.raises(ValueError, match="bad"), breaker.guarding():
        raise ValueError("bad")

    assert not breaker.is_open


def test_call_may_name_its_own_failures(breaker: CircuitBreaker) -> None:
    with pytest.raises(ValueError, match="bad"), breaker.guarding(gone=(ValueError,)):
        raise ValueError("bad")

    assert breaker.is_open
