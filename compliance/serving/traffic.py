"""Counts of answered requests by minute and duration, of all web workers together, in Redis for two hours.

A worker counts in memory and adds its counts to Redis every few seconds, so that a request costs no round
trip. A worker that is killed takes its last seconds with it.
"""

import asyncio
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.conf import settings
from redis.exceptions import RedisError

from compliance.stores import redis

log = logging.getLogger(__name__)

BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
"""Upper bounds of the durations that are counted together; one more count is of what took longer."""
HOUR: Final = 60
KEPT_SECONDS: Final = 2 * 3600
FLUSH_SECONDS: Final = 5.0
ERRORS: Final = "errors"
REPORTED_BY: Final = frozenset({"/v1/events", "/v1/events/batch"})
"""Where agents report events."""


class Kind(StrEnum):
    """What a request is counted as."""

    EVENTS = "events"
    VERIFY = "verify"
    API = "api"
    CONSOLE = "console"


def kind_of(method: str, path: str) -> Kind | None:
    """Return the kind of a request; None for health checks, static files and what no route has."""
    if method == "POST" and path in REPORTED_BY:
        return Kind.EVENTS
    if path.startswith("/v1/verify"):
        return Kind.VERIFY
    if path.startswith(("/v1/", "/1.0/", "/.well-known/")):
        return Kind.API
    return Kind.CONSOLE if path.startswith("/admin/") else None


@dataclass(frozen=True)
class KindTraffic:
    """An hour of one kind: `by_duration` has a count for each of `BOUNDS_MS`, and one of the slower."""

    kind: Kind
    by_duration: Sequence[int]
    by_minute: Sequence[int]
    errors: int

    @property
    def requests(self) -> int:
        return sum(self.by_duration)

    def quantile_ms(self, share: float) -> int | None:
        """Return the bound that this share of the requests kept; None if they are slower than all bounds."""
        wanted, seen = share * self.requests, 0
        for bound, count in zip(BOUNDS_MS, self.by_duration, strict=False):
            seen += count
            if seen >= wanted:
                return bound
        return None


@dataclass
class Traffic:
    """The counts of one web worker; all but `_send` belongs to its event loop."""

    _counts: Counter[tuple[int, str]] = field(default_factory=Counter)

    def note(self, *, method: str, path: str, status: int, seconds: float, at: float) -> None:
        """Count an answer given at the Unix time `at`, `seconds` after its request was read."""
        kind = kind_of(method, path)
        if kind is None:
            return
        minute = int(at) // 60
        self._counts[minute, f"{kind}:{bisect_left(BOUNDS_MS, seconds * 1000)}"] += 1
        if status >= 500:
            self._counts[minute, f"{kind}:{ERRORS}"] += 1

    async def flush(self) -> None:
        """Add the counts to Redis; without it they wait, for as long as they would be kept there."""
        counts, self._counts = self._counts, Counter()
        if not counts:
            return
        try:
            await asyncio.to_thread(_send, counts)
        except (RedisError, OSError) as error:
            log.debug("counts of requests wait: %s", type(error).__name__)
            newest = max(minute for minute, _ in counts)
            kept = {key: count for key, count in counts.items() if key[0] > newest - KEPT_SECONDS // 60}
            self._counts.update(kept)

    async def flush_until(self, ended: asyncio.Event) -> None:
        """Flush every few seconds, and once more at the end."""
        while not ended.is_set():
            waiting = asyncio.ensure_future(ended.wait())
            await asyncio.wait([waiting], timeout=FLUSH_SECONDS)
            waiting.cancel()
            await self.flush()


def last_hour(*, now: datetime) -> list[KindTraffic]:
    """Return the last hour of each kind, up to this minute. Raises: RedisError."""
    minute = int(now.timestamp()) // 60
    pipeline = redis.client().pipeline(transaction=False)
    for earlier in range(HOUR):
        pipeline.hgetall(_key(minute - HOUR + 1 + earlier))
    minutes = [{name.decode(): int(count) for name, count in found.items()} for found in pipeline.execute()]
    return [_summed(kind, minutes) for kind in Kind]


def _summed(kind: Kind, minutes: Sequence[Mapping[str, int]]) -> KindTraffic:
    slots = range(len(BOUNDS_MS) + 1)
    table = [[minute.get(f"{kind}:{slot}", 0) for slot in slots] for minute in minutes]
    return KindTraffic(
        kind,
        by_duration=[sum(column) for column in zip(*table, strict=True)],
        by_minute=[sum(row) for row in table],
        errors=sum(minute.get(f"{kind}:{ERRORS}", 0) for minute in minutes),
    )


def _send(counts: Mapping[tuple[int, str], int]) -> None:
    pipeline: Any = redis.client().pipeline(transaction=True)
    for (minute, name), count in counts.items():
        pipeline.hincrby(_key(minute), name, count)
    for minute in {minute for minute, _ in counts}:
        pipeline.expire(_key(minute), KEPT_SECONDS)
    pipeline.execute()


def _key(minute: int) -> str:
    # The braces keep all minutes in one slot of a cluster
    return f"{settings.SERVICE_NAME}:{{traffic}}:{minute}"
