"""A lock that many calls share and one restart or fork holds alone, each with a time limit."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class LockTimeout(Exception):
    """The lock was not acquired in time."""


class SharedLock:
    """A readers-writer lock; a waiting writer keeps new readers out. Timeouts are in seconds."""

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._holders = 0
        self._exclusive = False

    @property
    def holders(self) -> int:
        """Number of shared holders, read without the lock, as a forked child must."""
        return self._holders

    @contextmanager
    def shared(self, timeout: float) -> Iterator[None]:
        """Hold the lock together with others; raises `LockTimeout`."""
        with self._condition:
            if self._exclusive and not self._condition.wait_for(lambda: not self._exclusive, timeout):
                raise LockTimeout("the lock stayed exclusive")
            self._holders += 1
        try:
            yield
        finally:
            with self._condition:
                self._holders -= 1
                if self._exclusive:
                    self._condition.notify_all()

    @contextmanager
    def exclusive(self, timeout: float) -> Iterator[None]:
        """Hold the lock alone; raises `LockTimeout`."""
        self.acquire_exclusive(timeout)
        try:
            yield
        finally:
            self.release_exclusive()

    def acquire_exclusive(self, timeout: float) -> None:
        """Keep new holders out and wait until the present ones have left; raises `LockTimeout`."""
        deadline = time.monotonic() + timeout
        with self._condition:
            if not self._condition.wait_for(lambda: not self._exclusive, timeout):
                raise LockTimeout("another holds the lock alone")
            self._exclusive = True
            if not self._condition.wait_for(lambda: not self._holders, max(0.0, deadline - time.monotonic())):
                self._exclusive = False
                self._condition.notify_all()
                raise LockTimeout("calls in flight did not return")

    def release_exclusive(self) -> None:
        with self._condition:
            self._exclusive = False
            self._condition.notify_all()
