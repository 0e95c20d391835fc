"""Gate, circuit and lanes by themselves: time limits, precedence, recovery."""

import threading
import time

import pytest

from compliance.keys.base import KeyServiceNotConfigured, KeyServiceUnavailable
from compliance.keys.circuit import FIRST_DELAY, Circuit
from compliance.keys.gate import Gate, GateTimeout
from compliance.keys.lanes import Lanes, LanesBusy
from compliance.tests.waiting import eventually


def test_gate_closes_when_calls_have_come_back() -> None:
    gate, entered, seen = Gate(), threading.Event(), []

    def call() -> None:
        with gate.shared(1):
            entered.set()
            time.sleep(0.1)
            seen.append("call")

    thread = threading.Thread(target=call)
    thread.start()
    entered.wait(1)
    with gate.exclusive(1):
        seen.append("exclusive")
    thread.join()

    assert seen == ["call", "exclusive"]


def test_gate_that_can_not_close_opens_again() -> None:
    gate = Gate()

    with gate.shared(1):
        with pytest.raises(GateTimeout):
            gate.close(0.05)
        with gate.shared(0.05):
            assert gate.inside == 2


def test_closed_gate_turns_calls_away_in_time() -> None:
    gate = Gate()

    with gate.exclusive(1), pytest.raises(GateTimeout), gate.shared(0.05):
        pass
    with gate.shared(0.05):
        assert gate.inside == 1


def test_open_circuit_refuses_then_lets_one_probe_through() -> None:
    circuit = Circuit()
    circuit.failed(circuit.admit())

    with pytest.raises(KeyServiceUnavailable) as refused:
        circuit.admit()
    time.sleep(2 * FIRST_DELAY + 0.05)
    circuit.admit()

    assert refused.value.retry_after == 1
    with pytest.raises(KeyServiceUnavailable):
        circuit.admit()


def test_circuit_closes_on_success() -> None:
    circuit = Circuit()
    circuit.failed(circuit.admit())

    circuit.succeeded()

    assert not circuit.is_open
    circuit.admit()


def test_failures_of_calls_admitted_together_count_once() -> None:
    circuit = Circuit()
    tickets = [circuit.admit() for _ in range(10)]

    for ticket in tickets:
        circuit.failed(ticket)
    time.sleep(2 * FIRST_DELAY + 0.05)

    assert circuit.admit() is not None


def test_refused_pin_keeps_the_circuit_open() -> None:
    circuit = Circuit()
    circuit.refuse("PinIncorrect")

    with pytest.raises(KeyServiceNotConfigured):
        circuit.admit()


def test_lane_returns_results_and_errors() -> None:
    lanes = Lanes(size=1, name="test")

    assert lanes.run(lambda: 7, timeout=1) == 7
    with pytest.raises(ZeroDivisionError):
        lanes.run(lambda: 1 // 0, timeout=1)
    assert lanes.run(lambda: 8, timeout=1) == 8


def test_stuck_calls_cost_their_callers_only_the_deadline() -> None:
    lanes, release = Lanes(size=2, name="test"), threading.Event()

    for _ in range(2):
        with pytest.raises(LanesBusy):
            lanes.run(release.wait, timeout=0.05)
    started = time.monotonic()
    with pytest.raises(LanesBusy, match="stuck"):
        lanes.run(lambda: 7, timeout=5)

    assert time.monotonic() - started < 1
    release.set()
    assert eventually(lambda: lanes.stuck == 0, seconds=2)
    assert lanes.run(lambda: 7, timeout=1) == 7


def test_stuck_call_does_not_take_a_lane_from_others() -> None:
    lanes, release = Lanes(size=2, name="test"), threading.Event()
    with pytest.raises(LanesBusy):
        lanes.run(release.wait, timeout=0.05)
    together = threading.Barrier(2)
    arrived: list[int] = []

    threads = [
        threading.Thread(target=lambda: arrived.append(lanes.run(lambda: together.wait(1), timeout=2)))
        for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(arrived) == [0, 1]
    release.set()


def test_call_that_never_started_is_not_made_later() -> None:
    lanes, release, made = Lanes(size=1, name="test"), threading.Event(), []
    blocker = threading.Thread(target=lambda: lanes.run(release.wait, timeout=5))
    blocker.start()
    time.sleep(0.05)

    with pytest.raises(LanesBusy, match="taken"):
        lanes.run(lambda: made.append(1), timeout=0.05)

    release.set()
    blocker.join()
    assert lanes.run(lambda: 7, timeout=1) == 7
    assert made == []
