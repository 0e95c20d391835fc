"""Threads that call the module, so that a call that hangs costs its caller no more than the deadline."""

import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

Result = TypeVar("Result")


class CallTimeout(Exception):
    """The call did not start or did not return in time, or too many earlier calls never returned."""


class CallThreads:
    """Run at most `size` calls at a time in threads of their own, with `niceness` (per thread on Linux).

    As a C call cannot be interrupted, its caller leaves at the deadline and another thread takes its place.
    """

    def __init__(self, *, size: int, name: str, niceness: int = 0) -> None:
        self._size = size
        self._name = name
        self._niceness = niceness
        self._slots = threading.Semaphore(size)
        self._idle = threading.Semaphore(0)
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._stuck: set[Future[Any]] = set()

    @property
    def is_blocked(self) -> bool:
        """Return whether so many calls hang in the module that none can be made."""
        return len(self._stuck) >= self._size

    def run(self, call: Callable[[], Result], *, timeout: float) -> Result:
        """Return the result of `call` or raise its exception; `CallTimeout` after `timeout` seconds."""
        if self.is_blocked:
            raise CallTimeout(f"{self._size} calls are stuck in the module")
        deadline, future = time.monotonic() + timeout, Future[Result]()
        if not self._slots.acquire(timeout=timeout):
            raise CallTimeout("all threads are taken")
        try:
            if not self._idle.acquire(blocking=False):
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
            self._queue.put((future, call))
            return future.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError as error:
            if future.done():
                return future.result()
            self._stuck.add(future)
            future.add_done_callback(self._stuck.discard)
            raise CallTimeout("a call into the module did not return in time") from error
        finally:
            self._slots.release()

    def _work(self) -> None:
        if self._niceness:
            thread = threading.get_native_id()
            with suppress(OSError):
                present = os.getpriority(os.PRIO_PROCESS, thread)
                os.setpriority(os.PRIO_PROCESS, thread, max(present, self._niceness))
        while True:
            future, call = self._queue.get()
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001  (the caller's thread raises it)
                future.set_exception(error)
            del future, call
            self._idle.release()
