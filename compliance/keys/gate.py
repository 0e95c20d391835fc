"""A gate that many calls pass together and that one can close: calls into the module against its restart or
a fork.

`C_Finalize` under a running call is undefined behaviour, and a child forked during a call inherits its
locked mutexes; both wait here until the calls in flight have come back.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class GateTimeout(Exception):
    """The gate did not open, or its calls did not drain, in time."""


class Gate:
    """Shared passage and exclusive closing, both with a time limit in seconds; closing has precedence."""

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._inside = 0
        self._closed = False

    @property
    def inside(self) -> int:
        """Calls in flight; read without the lock by a forked child, whose only thread it has."""
        return self._inside

    @contextmanager
    def shared(self, timeout: float) -> Iterator[None]:
        """Pass with others; raises `GateTimeout` when the gate stays closed."""
        with self._condition:
            if self._closed and not self._condition.wait_for(lambda: not self._closed, timeout):
                raise GateTimeout("the gate stayed closed")
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                if self._closed:
                    self._condition.notify_all()

    @contextmanager
    def exclusive(self, timeout: float) -> Iterator[None]:
        """Close the gate and wait for the calls inside; raises `GateTimeout` with the gate open again."""
        self.close(timeout)
        try:
            yield
        finally:
            self.open()

    def close(self, timeout: float) -> None:
        """As `exclusive()`, for callers that can't use a block; pair with `open()`."""
        deadline = time.monotonic() + timeout
        with self._condition:
            if not self._condition.wait_for(lambda: not self._closed, timeout):
                raise GateTimeout("another holds the gate closed")
            self._closed = True
            if not self._condition.wait_for(lambda: not self._inside, max(0.0, deadline - time.monotonic())):
                self._closed = False
                self._condition.notify_all()
                raise GateTimeout("calls in flight did not come back")

    def open(self) -> None:
        """Let calls pass again."""
        with self._condition:
            self._closed = False
            self._condition.notify_all()
