"""Rate limits: an exact sliding window in Redis, and in the memory of the process while Redis is away.

A bucket is a log of how many requests were let through at which moment, newest first, and their total. No
window of 60 seconds ever holds more than the limit, wherever it begins. Counting takes one round trip and
amortised constant time: requests that are counted together are one entry.
"""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from redis.exceptions import RedisError

from compliance.stores import redis

log = logging.getLogger(__name__)

KEPT_NAMES = 10_000

SCRIPT = redis.Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window, cost, more = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local log, total = KEYS[1], KEYS[2]
local used = tonumber(redis.call('GET', total) or 0)
local function read(entry)
  local moment, count = string.match(entry, '(%d+):(%d+)')
  return tonumber(moment), tonumber(count)
end
local oldest = redis.call('LINDEX', log, -1)
while oldest do
  local moment, count = read(oldest)
  if moment > now - window then break end
  redis.call('RPOP', log)
  used = used - count
  oldest = redis.call('LINDEX', log, -1)
end
if not oldest then used = 0 end
local taken = 0
if used + cost <= limit then taken = math.min(cost + more, limit - used) end
if taken > 0 then
  redis.call('LPUSH', log, now .. ':' .. taken)
  redis.call('PEXPIRE', log, window)
end
redis.call('SET', total, used + taken, 'PX', window)
local leaves = oldest and read(oldest) or now
return {taken, limit - used - taken, leaves + window, now}
""")
"""Lets `cost` requests through or none, and after them up to `more` single ones."""


class Caller(NamedTuple):
    """Whom a limit counts: the name of the limit (a key of `RATE_LIMITS`), and a key's id or an address."""

    bucket: str
    identity: str


class RateLimit(msgspec.Struct, frozen=True):
    """Where a caller stands against a limit; `reset_at` is a Unix time, `retry_after` seconds."""

    allowed: bool
    limit: int
    remaining: int
    reset_at: int
    retry_after: int

    def headers(self) -> dict[str, str]:
        """The headers of every answer, with Retry-After where the request is refused."""
        values = {"Limit": self.limit, "Remaining": self.remaining, "Reset": self.reset_at}
        found = {f"X-RateLimit-{name}": str(value) for name, value in values.items()}
        return found if self.allowed else {**found, "Retry-After": str(self.retry_after)}


def hit(bucket: str, identity: str, *, cost: int = 1) -> RateLimit:
    """Count `cost` requests of `identity` against `bucket`, all or none."""
    caller = Caller(bucket, identity)
    call = _call(caller, cost, 0)
    try:
        with redis.circuit.guarding():
            (answer,) = SCRIPT.run(call)
        count = _Count(*answer)
    except RedisError as error:
        count = _counted_here(caller, cost, 0, error)
    return _rate_limit(caller, count, cost)


def hit_here(bucket: str, identity: str) -> RateLimit:
    """Count one request of `identity` in this process alone, without asking Redis."""
    caller = Caller(bucket, identity)
    return _rate_limit(caller, _counted_here(caller, 1, 0), 1)


async def hit_each(script: redis.AsyncScript, callers: Sequence[Caller]) -> list[RateLimit]:
    """Count one request of each caller, as that many `hit()`s would, in one round trip.

    `script` asks for `SCRIPT` from the event loop.
    """
    wanted = Counter(callers)
    try:
        with redis.circuit.guarding():
            answers = await script.run(*(_call(caller, 0, count) for caller, count in wanted.items()))
        counts = {caller: _Count(*answer) for caller, answer in zip(wanted, answers, strict=True)}
    except RedisError as error:
        counts = {caller: _counted_here(caller, 0, count, error) for caller, count in wanted.items()}
    return _one_each(callers, counts)


def forget() -> None:
    """Count every caller anew, as far as this process remembers."""
    _memory.clear()


class _Count(NamedTuple):
    """How many were let through, how many remain, when the oldest leaves the window, and the time."""

    taken: int
    remaining: int
    reset_ms: int
    now_ms: int


def _one_each(callers: Sequence[Caller], counts: Mapping[Caller, _Count]) -> list[RateLimit]:
    """One result for each request, in order; `counts` has the requests of one caller together."""
    seen: Counter[Caller] = Counter()
    results = []
    for caller in callers:
        seen[caller] += 1
        count = counts[caller]
        # A later request of the same caller finds less left; one for which nothing was left is refused.
        left = count.remaining + max(count.taken - seen[caller], 0)
        results.append(_rate_limit(caller, count._replace(remaining=left), seen[caller]))
    return results


def _rate_limit(caller: Caller, count: _Count, cost: int) -> RateLimit:
    return RateLimit(
        allowed=count.taken >= cost,
        limit=settings.RATE_LIMITS[caller.bucket],
        remaining=count.remaining,
        reset_at=math.ceil(count.reset_ms / 1000),
        retry_after=max(1, math.ceil((count.reset_ms - count.now_ms) / 1000)),
    )


@lru_cache(maxsize=KEPT_NAMES)
def _name(caller: Caller) -> str:
    # The braces keep both keys in one slot of a cluster
    return f"{settings.SERVICE_NAME}:limit:{{{caller.bucket}:{caller.identity}}}"


def _call(caller: Caller, cost: int, more: int) -> tuple[Any, ...]:
    name, limit = _name(caller), settings.RATE_LIMITS[caller.bucket]
    return 2, f"{name}:log", f"{name}:total", limit, settings.RATE_LIMIT_WINDOW_SECONDS * 1000, cost, more


def _counted_here(caller: Caller, cost: int, more: int, error: RedisError | None = None) -> _Count:
    if error is not None:
        log.debug("rate limits counted in memory: %s", type(error).__name__)
    limit, window_ms = settings.RATE_LIMITS[caller.bucket], settings.RATE_LIMIT_WINDOW_SECONDS * 1000
    return _memory.count(_name(caller), limit, window_ms, cost, more)


class _MemoryLog:
    """How many requests of one caller were let through at which moment (ms), oldest first."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, int]] = deque()
        self.total = 0

    def add(self, moment: int, count: int) -> None:
        if count > 0:
            self.total += count
            self._entries.append((moment, count))

    def leave_behind(self, moment: int) -> None:
        while self._entries and self._entries[0][0] <= moment:
            self.total -= self._entries.popleft()[1]

    def oldest(self, default: int) -> int:
        return self._entries[0][0] if self._entries else default


class _MemoryWindow:
    """The same window for one process; keeps the service limited, if less strictly, without Redis."""

    MAX_BUCKETS = 10_000

    def __init__(self) -> None:
        self._lock = Lock()
        self._buckets: dict[str, _MemoryLog] = {}

    def clear(self) -> None:
        with self._lock:
            self._buckets.clear()

    def count(self, name: str, limit: int, window_ms: int, cost: int, more: int) -> _Count:
        """As `SCRIPT`."""
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            if len(self._buckets) > self.MAX_BUCKETS:
                self._buckets.clear()
            entries = self._buckets.setdefault(name, _MemoryLog())
            entries.leave_behind(now_ms - window_ms)
            room = limit - entries.total
            taken = min(cost + more, room) if cost <= room else 0
            entries.add(now_ms, taken)
            return _Count(taken, room - taken, entries.oldest(now_ms) + window_ms, now_ms)


_memory = _MemoryWindow()
