"""Counts of requests and groups of an event loop, gathered in memory and added to the metrics each second.

A count costs some hundred nanoseconds here and some microseconds there. A loop that is killed takes its last
second with it.
"""

import asyncio
from bisect import bisect_left
from collections import deque
from typing import Final

from prometheus_client import Histogram

from compliance.observing import metrics

MOST_GATHERED: Final = 1_000_000
"""Times of blocks; a loop that could not write for so long forgets the oldest."""
FLUSH_SECONDS: Final = 1.0
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNROUTED: Final = "-"
"""The route of what no view or endpoint has answered."""


def method_label(method: str) -> str:
    """The method as a label; what clients make up is one."""
    return method if method in _METHODS else "other"


def note_now(*, method: str, route: str, status: int, seconds: float) -> None:
    """Count one answer at once, from any thread."""
    method = method_label(method)
    metrics.counter(metrics.REQUESTS, method, route, str(status)).inc()
    metrics.observe(metrics.histogram(metrics.REQUEST_SECONDS, method, route, _class_of(status)), seconds)


def note_refused(status: int) -> None:
    """Count a request that was refused before its end."""
    metrics.REFUSED.labels(str(status)).inc()


def _class_of(status: int) -> str:
    """The class of a status as a label: with each status a histogram would be many series."""
    return f"{status // 100}xx"


class LoopHistogram:
    """What one event loop has observed of a histogram since the last `flush()`."""

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._bounds = histogram._upper_bounds
        self._slots = [0] * len(self._bounds)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._slots[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def flush(self) -> int:
        """Add what was observed to the histogram; return how many values that was."""
        count = sum(self._slots)
        if count:
            self._histogram._sum.inc(self._sum)
            for slot, number in enumerate(self._slots):
                if number:
                    self._histogram._buckets[slot].inc(number)
            self._slots, self._sum = [0] * len(self._bounds), 0.0
        return count


class RequestCounts:
    """The counts of one event loop since the last `flush()`."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str, int], LoopHistogram] = {}
        self._histograms: dict[Histogram, LoopHistogram] = {}

    def note(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer; `route` has few values."""
        found = self._answers.get((method, route, status))
        if found is None:
            method = method_label(method)
            child = metrics.histogram(metrics.REQUEST_SECONDS, method, route, _class_of(status))
            found = self._answers.setdefault((method, route, status), LoopHistogram(child))
        found.observe(seconds)

    def of_groups(self, metric: Histogram, name: str) -> LoopHistogram:
        """A histogram of the groups of this name, to be observed in this event loop only."""
        return self._of(metrics.histogram(metric, name))

    def flush(self) -> None:
        """Add the counts to the metrics of this process."""
        for (method, route, status), found in self._answers.items():
            if count := found.flush():
                metrics.counter(metrics.REQUESTS, method, route, str(status)).inc(count)
        self._take(metrics.gathered)
        for histogram in self._histograms.values():
            histogram.flush()

    async def flush_until(self, ended: asyncio.Event) -> None:
        """Flush every second, and at the end; meanwhile the times of blocks are gathered, too."""
        metrics.gathered = deque(maxlen=MOST_GATHERED)
        while not ended.is_set():
            waiting = asyncio.ensure_future(ended.wait())
            await asyncio.wait([waiting], timeout=FLUSH_SECONDS)
            waiting.cancel()
            self.flush()
        rest, metrics.gathered = metrics.gathered, None
        self._take(rest)
        self.flush()

    def _take(self, gathered: deque[tuple[Histogram, float]] | None) -> None:
        """Observe the times that all threads have gathered."""
        while gathered:
            child, seconds = gathered.popleft()
            self._of(child).observe(seconds)

    def _of(self, child: Histogram) -> LoopHistogram:
        found = self._histograms.get(child)
        return self._histograms.setdefault(child, LoopHistogram(child)) if found is None else found


loop_counts: Final = RequestCounts()
"""Those of this process's event loop."""
