"""Groups: what reaches a process together is worked on together, by one thread or task for each environment.

While a group is worked on the next one gathers, so groups grow with the load by themselves: a lone item waits
for nobody, and a thousand a second cost some tens of round trips.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Thread
from time import monotonic
from typing import Generic, TypeVar

from django.db import connections

from compliance import environments
from compliance.environments import Environment

log = logging.getLogger(__name__)

SMOOTHING = 1 / 16
"""What the last group's share is in how long a group is worked on of late."""

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class QueueFull(Exception):
    """More waits than can be worked on in good time."""


@dataclass(frozen=True)
class Sizes:
    """How large a group may be, and how many items may wait; more are turned away.

    A group after one of several gathers until it has `worth` items, or as many as that one had, or its first
    has waited for as long as two groups are worked on of late, at most `longest_gathering` seconds.
    """

    largest: int
    longest_queue: int
    worth: int = 1
    longest_gathering: float = 0.0


class LoopGroups(Generic[Item, Outcome]):
    """Items of one kind, worked on in the event loop itself: `work` only waits for others, and is no load.

    `work` has an outcome for each item, in order; what it raises is each one's outcome.
    """

    def __init__(
        self, work: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome]]], *, sizes: Sizes
    ) -> None:
        self._work = work
        self._sizes = sizes
        self._waiting: list[tuple[Item, asyncio.Future[Outcome]]] = []
        self._working: asyncio.Task[None] | None = None

    def ask(self, item: Item) -> asyncio.Future[Outcome]:
        """The item's outcome, of the next group, or what `work` raises; raises `QueueFull` at once."""
        if len(self._waiting) >= self._sizes.longest_queue:
            raise QueueFull
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((item, future))
        if self._working is None or self._working.done():
            # It begins when the loop has seen all that is there now: these make the first group.
            self._working = loop.create_task(self._run())
        return future

    async def _run(self) -> None:
        while self._waiting:
            largest = self._sizes.largest
            group, self._waiting = self._waiting[:largest], self._waiting[largest:]
            futures = [future for _, future in group]
            try:
                outcomes = await self._work([item for item, _ in group])
            except Exception as error:
                # Whatever it is, those who come next are worked on.
                log.exception("a group of %d met a defect", len(group))
                _fail(futures, error)
            else:
                _deliver(futures, outcomes)


class Groups(Generic[Item, Outcome]):
    """The items of one environment: `ask()` in the event loop, `work` in a thread that has one connection.

    `work` has an outcome for each item, in order; what it raises is each one's outcome.
    """

    def __init__(
        self,
        environment: Environment,
        work: Callable[[Sequence[Item]], Sequence[Outcome]],
        *,
        name: str,
        sizes: Sizes,
    ) -> None:
        self._environment = environment
        self._work = work
        self._name = name
        self._sizes = sizes
        self._waiting: list[tuple[Item, asyncio.Future[Outcome]]] = []
        self._changed = Condition()
        self._is_closing = False
        self._last_size = 0
        self._first_at = 0.0
        self._work_seconds = 0.0
        self._thread: Thread | None = None

    def begin(self, first: Callable[[], None]) -> None:
        """Start the thread ahead of the first item, and have it do `first`, which raises nothing."""
        with self._changed:
            if self._thread is None:
                self._start(first)

    async def ask(self, item: Item) -> Outcome:
        """The item's outcome, of the next group; raises `QueueFull` at once, and what `work` raises."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        with self._changed:
            if len(self._waiting) >= self._sizes.longest_queue or self._is_closing:
                raise QueueFull
            if not self._waiting:
                self._first_at = monotonic()
            self._waiting.append((item, future))
            if self._thread is None:
                self._start()
            elif len(self._waiting) in (1, self._wanted()):
                self._changed.notify()
        return await future

    def close(self) -> None:
        """Work on what waits, then end the thread."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _start(self, first: Callable[[], None] | None = None) -> None:
        name = f"{self._name}-{self._environment.value}"
        self._thread = Thread(target=self._run, args=[first], name=name, daemon=True)
        self._thread.start()

    def _run(self, first: Callable[[], None] | None) -> None:
        with environments.use(self._environment):
            if first is not None:
                first()
            while group := self._next_group():
                began = monotonic()
                self._settle([item for item, _ in group], [future for _, future in group])
                self._work_seconds += SMOOTHING * (monotonic() - began - self._work_seconds)
        connections.close_all()

    def _next_group(self) -> list[tuple[Item, asyncio.Future[Outcome]]]:
        sizes = self._sizes
        with self._changed:
            while not self._waiting and not self._is_closing:
                self._changed.wait()
            if self._last_size > 1 and sizes.longest_gathering and not self._is_closing:
                gathering = min(2 * self._work_seconds, sizes.longest_gathering)
                left = self._first_at + gathering - monotonic()
                self._changed.wait_for(lambda: len(self._waiting) >= self._wanted(), max(left, 0.0))
            group, self._waiting = self._waiting[: sizes.largest], self._waiting[sizes.largest :]
            self._last_size = len(group)
            return group

    def _wanted(self) -> int:
        """How many items make a group that waits for no more."""
        return max(self._last_size, self._sizes.worth)

    def _settle(self, items: list[Item], futures: list[asyncio.Future[Outcome]]) -> None:
        loop = futures[0].get_loop()
        try:
            outcomes = self._work(items)
        except Exception as error:
            # Whatever it is, it must not end the thread.
            log.exception("a group of %d met a defect", len(items))
            loop.call_soon_threadsafe(_fail, futures, error)
        else:
            loop.call_soon_threadsafe(_deliver, futures, outcomes)


def _deliver(futures: list[asyncio.Future[Outcome]], outcomes: Sequence[Outcome]) -> None:
    for future, outcome in zip(futures, outcomes, strict=True):
        # Its request may have been given up by the client.
        if not future.done():
            future.set_result(outcome)


def _fail(futures: list[asyncio.Future[Outcome]], error: Exception) -> None:
    for future in futures:
        if not future.done():
            future.set_exception(error)
