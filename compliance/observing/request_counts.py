"""Counts of the requests that an event loop answers, gathered in memory and added to the metrics each second.

A count costs some hundred nanoseconds here and some microseconds there. A loop that is killed takes its last
second with it.
"""

import asyncio
from bisect import bisect_left
from collections import Counter
from typing import Final

from prometheus_client import Histogram

from compliance.observing import metrics

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
    metrics.REQUESTS.labels(method, route, str(status)).inc()
    metrics.REQUEST_SECONDS.labels(method, route, _class_of(status)).observe(seconds)


def note_refused(status: int) -> None:
    """Count a request that was refused before its end."""
    metrics.REFUSED.labels(str(status)).inc()


def _class_of(status: int) -> str:
    """The class of a status as a label: with each status a histogram would be many series."""
    return f"{status // 100}xx"


def _seconds_of(method: str, route: str, status: int) -> Histogram:
    return metrics.REQUEST_SECONDS.labels(method_label(method), route, _class_of(status))


class RequestCounts:
    """The counts of one event loop since the last `flush()`."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._slots: Counter[tuple[str, str, int, int]] = Counter()
        self._seconds: Counter[tuple[str, str, int]] = Counter()

    def note(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer; `route` has few values."""
        self._answers[method, route, status] += 1
        self._slots[method, route, status, bisect_left(metrics.SECONDS, seconds)] += 1
        self._seconds[method, route, status] += seconds  # type: ignore[assignment]

    def flush(self) -> None:
        """Add the counts to the metrics of this process."""
        answers, self._answers = self._answers, Counter()
        slots, self._slots = self._slots, Counter()
        seconds, self._seconds = self._seconds, Counter()
        for (method, route, status), count in answers.items():
            metrics.REQUESTS.labels(method_label(method), route, str(status)).inc(count)
        for (method, route, status, slot), count in slots.items():
            _seconds_of(method, route, status)._buckets[slot].inc(count)
        for (method, route, status), total in seconds.items():
            _seconds_of(method, route, status)._sum.inc(total)

    async def flush_until(self, ended: asyncio.Event) -> None:
        """Flush every second, and at the end."""
        while not ended.is_set():
            waiting = asyncio.ensure_future(ended.wait())
            await asyncio.wait([waiting], timeout=FLUSH_SECONDS)
            waiting.cancel()
            self.flush()


loop_counts: Final = RequestCounts()
"""Those of this process's event loop."""
