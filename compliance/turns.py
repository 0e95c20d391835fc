"""Turns: what waits for one of a few workers in the event loop is taken from each owner in turn."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from compliance.groups import QueueFull

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class _Waiting(NamedTuple, Generic[Item, Outcome]):
    """An item, its outcome to come, and the end of its patience."""

    item: Item
    future: "asyncio.Future[Outcome]"
    end: asyncio.TimerHandle


class LoopTurns(Generic[Item, Outcome]):
    """Items of one kind, each worked on by one of `workers`, which only wait for others, and are no load.

    An owner has `share` of them at most, and waits behind himself: however much he asks for, others have
    theirs. At most `longest_queue` items wait, each at most `patience` seconds.
    """

    def __init__(
        self,
        workers: Sequence[Callable[[Item], Awaitable[Outcome]]],
        *,
        share: int,
        longest_queue: int,
        patience: float,
    ) -> None:
        # Whoever worked last works next: the others need not even be connected.
        self._idle = list(workers)
        self._share = share
        self._longest_queue = longest_queue
        self._patience = patience
        self._working: Counter[Hashable] = Counter()
        self._queues: dict[Hashable, deque[_Waiting[Item, Outcome]]] = {}
        self._count = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, owner: Hashable, item: Item) -> "asyncio.Future[Outcome]":
        """The item's outcome, or what the worker raises; raises `QueueFull` at once, or after `patience`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        if self._idle and self._working[owner] < self._share:
            self._working[owner] += 1
            task = loop.create_task(self._run(self._idle.pop(), owner, item, future))
            # The loop itself would let go of it.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return future
        if self._count >= self._longest_queue:
            raise QueueFull
        end = loop.call_later(self._patience, _give_up, future)
        self._queues.setdefault(owner, deque()).append(_Waiting(item, future, end))
        self._count += 1
        return future

    async def _run(
        self,
        worker: Callable[[Item], Awaitable[Outcome]],
        owner: Hashable,
        item: Item,
        future: "asyncio.Future[Outcome]",
    ) -> None:
        """Work on the item, then on what waits."""
        while True:
            await _settle(future, worker(item))
            self._working[owner] -= 1
            if not self._working[owner]:
                del self._working[owner]
            following = self._next()
            if following is None:
                self._idle.append(worker)
                return
            owner, (item, future, _) = following
            self._working[owner] += 1

    def _next(self) -> tuple[Hashable, _Waiting[Item, Outcome]] | None:
        """What somebody still waits for: of the owners who may have a worker, the one longest without."""
        for owner in [owner for owner in self._queues if self._working[owner] < self._share]:
            queue = self._queues.pop(owner)
            while queue:
                waiting = queue.popleft()
                self._count -= 1
                waiting.end.cancel()
                if not waiting.future.done():
                    if queue:
                        # Behind all others.
                        self._queues[owner] = queue
                    return owner, waiting
        return None


async def _settle(future: "asyncio.Future[Outcome]", work: Awaitable[Outcome]) -> None:
    """Give the outcome, or what the work raises, to who waits for it; he may have gone away."""
    try:
        outcome = await work
    except Exception as error:
        # Whatever it is, those who come next are worked on.
        log.exception("an item met a defect")
        if not future.done():
            future.set_exception(error)
    else:
        if not future.done():
            future.set_result(outcome)


def _give_up(future: "asyncio.Future[Any]") -> None:
    if not future.done():
        future.set_exception(QueueFull())
