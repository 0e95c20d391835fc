"""Slots of what a process has few of, shared between tenants: no tenant takes all of them, all take turns."""

import asyncio
import concurrent.futures
from collections import Counter, deque
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock


class AllTaken(Exception):
    """No slot came free in time, or too many of the holder's requests wait already."""


class Slot(ExitStack):
    """A slot that a holder has or waits for; `release()`, or the end of `with`, gives it back once."""

    release = ExitStack.close

    def __init__(self, slots: "SharedSlots", holder: Hashable) -> None:
        super().__init__()
        self.holder = holder
        self.given: concurrent.futures.Future[None] = concurrent.futures.Future()
        self.callback(slots.give_back, self)


class SharedSlots:
    """`size` slots, of which one holder, as a rule a tenant, has at most `share` (half, but at least one).

    Those who wait are served turn by turn over the holders; at most `longest_queue` of a holder wait.
    Threads `take()` a slot, coroutines `wait()` for one.
    """

    def __init__(self, size: int, *, share: int | None = None, longest_queue: int = 100) -> None:
        self.size = size
        self.share = max(1, size // 2) if share is None else share
        self._longest_queue = longest_queue
        self._lock = Lock()
        self._held: set[Slot] = set()
        self._taken: Counter[Hashable] = Counter()
        self._waiting: dict[Hashable, deque[Slot]] = {}  # first the holder who is served next

    def take(self, holder: Hashable, *, seconds: float = 0.0) -> Slot:
        """Return a slot, at the latest after `seconds`. Raises: AllTaken."""
        with self._asked(holder) as slot:
            if not slot.given.done():
                concurrent.futures.wait([slot.given], timeout=seconds)
        return slot

    async def wait(self, holder: Hashable, *, seconds: float) -> Slot:
        """As `take()`, in an event loop."""
        with self._asked(holder) as slot:
            if not slot.given.done():
                await asyncio.wait([asyncio.wrap_future(slot.given)], timeout=seconds)
        return slot

    def give_back(self, slot: Slot) -> None:
        """Take back a slot, or what is left of the wait for one."""
        with self._lock:
            waiting = self._waiting.get(slot.holder)
            if slot in self._held:
                self._held.remove(slot)
                self._taken -= Counter([slot.holder])  # drops holders whose count is 0
            elif waiting and slot in waiting:
                waiting.remove(slot)
                if not waiting:
                    del self._waiting[slot.holder]
            self._serve()

    @contextmanager
    def _asked(self, holder: Hashable) -> Iterator[Slot]:
        """Queue for a slot, which must be there at the end of the block."""
        slot = Slot(self, holder)
        with self._lock:
            waiting = self._waiting.setdefault(holder, deque())
            if len(waiting) >= self._longest_queue:
                raise AllTaken
            waiting.append(slot)
            self._serve()
        try:
            yield slot
        except BaseException:
            slot.release()
            raise
        if slot not in self._held:
            slot.release()
            raise AllTaken

    def _serve(self) -> None:
        """Give what is free to those who wait: one slot to the first holder below its share, and so on."""
        while len(self._held) < self.size:
            able = (one for one in self._waiting if self._taken[one] < self.share)
            if (holder := next(able, None)) is None:
                return
            waiting = self._waiting.pop(holder)
            slot = waiting.popleft()
            if waiting:
                self._waiting[holder] = waiting  # behind the others
            self._held.add(slot)
            self._taken[holder] += 1
            slot.given.set_result(None)
