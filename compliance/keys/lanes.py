"""A few threads that make the calls into the module, so that a hung token costs a caller its deadline, not
its life.

A C call can't be interrupted: the caller leaves, the lane stays behind until the call returns, and another
lane takes its place. When too many are stuck, callers are refused at once.
"""

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

Result = TypeVar("Result")

BACKGROUND_NICENESS: Final = 5
"""A third of what a thread that signs gets, where both want a processor: a key is still made in seconds."""


class LanesBusy(Exception):
    """The call did not start or did not end in time, or too many calls are stuck."""


class Runner(Protocol):
    """Makes calls into the module, so many at a time."""

    def run(self, call: Callable[[], Result], *, timeout: float) -> Result:
        """The call's result or exception; `LanesBusy` when it does not come in time."""


class Seats:
    """At most `size` calls at a time, each in its caller's own thread.

    For callers whom nobody waits for longer than they may take, a host's connections: they save the way
    through another thread, and the call that hangs holds its seat.
    """

    def __init__(self, *, size: int) -> None:
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(size):
            self._free.put(number)
        self._since: dict[int, float] = {}
        self._size = size

    def run(self, call: Callable[[], Result], *, timeout: float) -> Result:
        """The call's result or exception; `LanesBusy` when no seat is free after `timeout` seconds, at once
        when all have been taken for longer than that.
        """
        if self.stuck(longer_than=timeout) >= self._size:
            raise LanesBusy(f"{self._size} calls are stuck in the module")
        try:
            seat = self._free.get(timeout=timeout)
        except queue.Empty as error:
            raise LanesBusy("all seats are taken") from error
        self._since[seat] = time.monotonic()
        try:
            return call()
        finally:
            del self._since[seat]
            self._free.put(seat)

    def stuck(self, *, longer_than: float) -> int:
        """How many calls have been running for more than so many seconds."""
        if len(self._since) < self._size:
            return 0
        now = time.monotonic()
        return sum(now - since > longer_than for since in list(self._since.values()))

    @property
    def size(self) -> int:
        return self._size


class _Job:
    """One call on its way through a lane; `done` is released when it has ended."""

    __slots__ = ("abandoned", "call", "done", "error", "result", "started")

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.done = threading.Lock()
        self.done.acquire()
        self.started = False
        self.abandoned = False
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.call()
        except BaseException as error:  # noqa: BLE001  (the caller's thread raises it)
            self.error = error
        finally:
            self.done.release()


class Lanes:
    """At most `size` calls at a time; at most `size` more threads held up by stuck calls.

    `in_background` gives its threads a low priority: work that may take its time beside calls that may not.
    """

    def __init__(self, *, size: int, name: str, in_background: bool = False) -> None:
        self._size = size
        self._name = name
        self._in_background = in_background
        self._queue: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0  # lanes with nothing assigned
        self._backlog = 0  # jobs assigned to nobody
        self._stuck = 0
        self._numbers = itertools.count(1)

    @property
    def stuck(self) -> int:
        """Calls that outlived their caller and have not returned yet."""
        return self._stuck

    def run(self, call: Callable[[], Result], *, timeout: float) -> Result:
        """The call's result or exception; `LanesBusy` after `timeout` seconds."""
        if self._stuck >= self._size:
            raise LanesBusy(f"{self._stuck} calls are stuck in the module")
        job = _Job(call)
        self._assign()
        self._queue.put(job)
        if not job.done.acquire(timeout=timeout):
            self._abandon(job)
        if job.error is not None:
            raise job.error
        result: Result = job.result
        return result

    def _assign(self) -> None:
        """Find a lane for one more job: a free one, a new one, or the next that ends its work."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            if self._threads - self._stuck >= self._size:
                self._backlog += 1
                return
            self._threads += 1
        name = f"{self._name}-{next(self._numbers)}"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def _abandon(self, job: _Job) -> None:
        """Leave a job that is late; returns if it ended at the last moment."""
        with self._lock:
            if job.done.acquire(blocking=False):
                return
            job.abandoned = True
            if job.started:
                self._stuck += 1
        raise LanesBusy(
            "a call into the module did not return in time" if job.started else "all lanes are taken"
        )

    def _work(self) -> None:
        if self._in_background:
            step_back()
        while True:
            job = self._queue.get()
            with self._lock:
                job.started = not job.abandoned
            if job.started:
                job.run()
            if self._is_surplus(job):
                return

    def _is_surplus(self, job: _Job) -> bool:
        """Note the end of a job; whether this lane was replaced while it was stuck and may end."""
        with self._lock:
            if job.started and job.abandoned:
                self._stuck -= 1
            if self._backlog:
                self._backlog -= 1
                return False
            if self._threads - self._stuck > self._size:
                self._threads -= 1
                return True
            self._free += 1
            return False


def step_back(niceness: int = BACKGROUND_NICENESS) -> None:
    """Give the calling thread a low priority; Linux has one for each thread."""
    thread = threading.get_native_id()
    with suppress(OSError):
        niceness = max(niceness, os.getpriority(os.PRIO_PROCESS, thread))
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
