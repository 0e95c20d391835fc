"""Batching in the event loop: what arrives while a group is worked on makes the next group."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, TypeVar

from compliance.observing import metrics

log = logging.getLogger(__name__)

SMOOTHING = 1 / 16  # the share of the last group in the average time of a group

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class QueueFull(Exception):
    """More items wait than can be worked on in good time."""


@dataclass(eq=False)
class Batcher(Generic[Item, Outcome]):
    """Hands items to `work` in groups of at most `largest`; `work` returns an outcome for each, in order.

    At most `longest_queue` items wait. After a group of one item the next group starts at once. After a
    larger group it starts when it has `worth` items or as many as the last one, when twice the average time
    of a group has passed since its first item, or after `longest_gathering` seconds, whichever comes first.
    Sizes and waits of groups are metrics under `name`, if it has one.
    """

    work: Callable[[Sequence[Item]], Awaitable[Sequence[Outcome]]]
    _: KW_ONLY
    largest: int
    longest_queue: int
    worth: int = 1
    longest_gathering: float = 0.0
    name: str = ""
    _waiting: list[tuple[Item, asyncio.Future[Outcome]]] = field(default_factory=list)
    _first_at: float = 0.0
    _last_size: int = 0
    _seconds: float = 0.0
    _enough: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    def ask(self, item: Item) -> "asyncio.Future[Outcome]":
        """Queue an item; the future has its outcome, or what `work` raised. Raises: QueueFull."""
        if len(self._waiting) >= self.longest_queue:
            raise QueueFull
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        if not self._waiting:
            self._first_at = loop.time()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            # It begins when the loop has seen all that has arrived by now: that makes the first group.
            # It belongs to all of them, so it has the context of none.
            self._task = loop.create_task(self._run(), context=Context())
        elif len(self._waiting) >= max(self._last_size, self.worth):
            self._enough.set()
        return future

    async def finish(self) -> None:
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            if self._last_size > 1 and len(self._waiting) < max(self._last_size, self.worth):
                self._enough.clear()
                until = self._first_at + min(2 * self._seconds, self.longest_gathering)
                timer = loop.call_at(until, self._enough.set)
                await self._enough.wait()
                timer.cancel()
            group, self._waiting = self._waiting[: self.largest], self._waiting[self.largest :]
            self._last_size = len(group)
            began = loop.time()
            if self.name:
                metrics.add(metrics.labelled(metrics.GROUP_SIZE, self.name), len(group))
                waited = began - self._first_at
                metrics.add(metrics.labelled(metrics.GROUP_WAIT_SECONDS, self.name), waited)
            outcomes: Sequence[Outcome | Exception]
            try:
                outcomes = await self.work([item for item, _ in group])
            except Exception as error:  # the next group is worked on, whatever this one met
                log.exception("a group of %d failed", len(group))
                outcomes = [error] * len(group)
            for (_, future), outcome in zip(group, outcomes, strict=True):
                # The client of a request may have gone away.
                if future.done():
                    continue
                if isinstance(outcome, Exception):
                    future.set_exception(outcome)
                else:
                    future.set_result(outcome)
            self._seconds += SMOOTHING * (loop.time() - began - self._seconds)
