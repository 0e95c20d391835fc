"""Rate limits: an exact sliding window in Redis, and in the process's memory while Redis is away.

A bucket is a list of the times of the requests let through, newest first. A request is let through
when fewer than the limit stand inside the window, so no window of 60 seconds ever holds more than the
limit, wherever it begins. One script, one round trip, amortised constant time.

A busy caller's requests are counted some ahead: a process reserves as many as it may need in the next second
and lets them through without a round trip; what it did not need it gives back with its next count. The limit
is never exceeded, and may be felt a twentieth early.
"""

import logging
import math
import time
from collections import deque
from functools import cache
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from redis.exceptions import RedisError

from compliance import redis
from compliance.bounded import Bounded

log = logging.getLogger(__name__)

LEASE_SECONDS = 1.0
LARGEST_SHARE = 20
"""A reservation is at most the limit divided by this."""
FIRST_SHARE = 1_000
"""And so much more than was needed of the last one: a caller who begins in haste is soon served ahead."""
CLAIM_SECONDS = 2.0
KEPT_LEASES = 10_000

_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local wanted, ahead = tonumber(ARGV[3]), tonumber(ARGV[4])
if tonumber(ARGV[5]) > 0 then redis.call('LREM', KEYS[1], ARGV[5], ARGV[6]) end
local oldest = redis.call('LINDEX', KEYS[1], -1)
while oldest and tonumber(oldest) <= now - window do
  redis.call('RPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], -1)
end
local used = redis.call('LLEN', KEYS[1])
local taken = 0
if used + wanted <= limit then
  taken = math.min(wanted + ahead, limit - used)
  local times = {}
  for i = 1, math.min(taken, 1000) do times[i] = now end
  local left = taken
  while left > 0 do
    local count = math.min(left, 1000)
    redis.call('LPUSH', KEYS[1], unpack(times, 1, count))
    left = left - count
  end
  redis.call('PEXPIRE', KEYS[1], window)
end
return {taken, limit - used - taken, (oldest and tonumber(oldest) or now) + window, now}
"""


class Verdict(msgspec.Struct, frozen=True):
    """What the limiter says of one request; `reset_at` is a Unix time, `retry_after` seconds."""

    allowed: bool
    limit: int
    remaining: int
    reset_at: int
    retry_after: int

    def headers(self) -> dict[str, str]:
        """The headers of every answer, and Retry-After where the request is refused."""
        found = {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(self.remaining),
            "X-RateLimit-Reset": str(self.reset_at),
        }
        if not self.allowed:
            found["Retry-After"] = str(self.retry_after)
        return found


def _with_remaining(verdict: Verdict, remaining: int) -> Verdict:
    return Verdict(verdict.allowed, verdict.limit, remaining, verdict.reset_at, verdict.retry_after)


class Lease:
    """Requests counted ahead for one caller by this process, to be let through within a second."""

    def __init__(self, verdict: Verdict, count: int, counted_ms: int) -> None:
        self.counted_ms = counted_ms
        self.taken = 0
        self.left = count
        self._verdict = verdict
        self._began = monotonic()
        self._claimed_at = -math.inf
        self._lock = Lock()

    def take(self) -> Verdict | None:
        """Let one more through; None when nothing is left."""
        with self._lock:
            if self.left == 0 or monotonic() >= self._began + LEASE_SECONDS:
                return None
            self.left -= 1
            self.taken += 1
            return _with_remaining(self._verdict, self._verdict.remaining + self.left)

    def untake(self) -> None:
        """One that was let through comes to nothing and will be counted elsewhere."""
        with self._lock:
            self.left += 1
            self.taken -= 1

    def close(self) -> int:
        """Let nothing more through; how many were left."""
        with self._lock:
            left, self.left = self.left, 0
            return left

    def shrink(self, most: int) -> int:
        """Let at most so many more through; how many were left."""
        with self._lock:
            left, self.left = self.left, min(self.left, most)
            return left

    def claim_renewal(self, *, when_due: bool = True) -> bool:
        """Whether half of it is gone, in number or in time, and nobody else is renewing it."""
        with self._lock:
            now = monotonic()
            is_due = self.left <= self.taken or now >= self._began + LEASE_SECONDS / 2
            # A claim lapses, lest one that came to nothing stays for good.
            if (when_due and not is_due) or now < self._claimed_at + CLAIM_SECONDS:
                return False
            self._claimed_at = now
            return True


_NOBODY = Verdict(allowed=False, limit=0, remaining=0, reset_at=0, retry_after=1)
_leases: Bounded[str, Lease] = Bounded(KEPT_LEASES)


def hit(bucket: str, identity: str, *, limit: int, cost: int = 1, ahead: bool = False) -> Verdict:
    """Count `cost` requests of `identity` against `bucket`, all or none; `ahead`: and reserve some more."""
    if not ahead:
        return _verdict(_count(_name(bucket, identity), limit, cost), limit, cost)
    verdict = take(bucket, identity) if cost == 1 else None
    if verdict is not None:
        return verdict
    name = _name(bucket, identity)
    lease = _leases.get(name)
    if lease is None or lease.claim_renewal(when_due=False):
        return _hit_ahead(name, limit, cost)
    # Somebody else is reserving just now: of two reservations one would be lost.
    return _verdict(_count(name, limit, cost), limit, cost)


def renew(bucket: str, identity: str, *, limit: int) -> None:
    """Reserve for the next second, after `claim_renewal()`; the present reservation serves until then."""
    _hit_ahead(_name(bucket, identity), limit, 0)


def claim_renewal(bucket: str, identity: str, *, when_due: bool = True) -> bool:
    """Whether the caller's reservation is due to be renewed, or none is there; true once, so act upon it."""
    lease = _leases.get(_name(bucket, identity))
    return lease is None or lease.claim_renewal(when_due=when_due)


def _hit_ahead(name: str, limit: int, cost: int) -> Verdict:
    last = _leases.get(name) or Lease(_NOBODY, 0, 0)
    # A reservation is renewed when half of it is gone, so that the next one soon lasts for its whole second.
    reserve = min(2 * last.taken + limit // FIRST_SHARE + 1, limit // LARGEST_SHARE)
    # What goes on serving is no more than is sure to be counted anew.
    kept = reserve if cost == 0 else 0
    back = last.shrink(kept)
    count = _count(name, limit, cost, ahead=reserve, back=back, back_ms=last.counted_ms)
    verdict = _verdict(count, limit, cost)
    # What was taken meanwhile of that which had just been returned.
    owed = max(min(back, kept) - last.close(), 0)
    reserved = max(count.taken - cost - owed, 0)
    _leases.put(name, Lease(verdict, reserved, count.now_ms))
    return _with_remaining(verdict, verdict.remaining + reserved)


def take(bucket: str, identity: str) -> Verdict | None:
    """Let one request through on what this process reserved; None when it has to be counted."""
    lease = _leases.get(_name(bucket, identity))
    return lease.take() if lease is not None else None


def give_back(bucket: str, identity: str) -> None:
    """Undo a `take()` of a moment ago."""
    lease = _leases.get(_name(bucket, identity))
    if lease is not None:
        lease.untake()


def forget_leases() -> None:
    """Count every caller's next request."""
    _leases.clear()


def _name(bucket: str, identity: str) -> str:
    return f"{settings.SERVICE_NAME}:limit:{bucket}:{identity}"


class _Count(NamedTuple):
    """How many were let through, how many remain, when the oldest leaves the window, and the time."""

    taken: int
    remaining: int
    reset_ms: int
    now_ms: int


def _verdict(count: _Count, limit: int, cost: int) -> Verdict:
    return Verdict(
        allowed=count.taken >= cost,
        limit=limit,
        remaining=count.remaining,
        reset_at=math.ceil(count.reset_ms / 1000),
        retry_after=max(1, math.ceil((count.reset_ms - count.now_ms) / 1000)),
    )


def _count(name: str, limit: int, wanted: int, *, ahead: int = 0, back: int = 0, back_ms: int = 0) -> _Count:
    """Let `wanted` through or none, and up to `ahead` more, once `back` of `back_ms` are returned."""
    window_ms = settings.RATE_LIMIT_WINDOW_SECONDS * 1000
    try:
        answer = redis.circuit.call(
            lambda: _script()(keys=[name], args=[limit, window_ms, wanted, ahead, back, back_ms])
        )
    except RedisError as error:
        log.debug("rate limits counted in memory: %s", type(error).__name__)
        return _memory.count(name, limit, window_ms, wanted, ahead, back)
    return _Count(*answer)


@cache
def _script() -> Any:
    return redis.client().register_script(_SCRIPT)


class _MemoryWindow:
    """The same window for one process; keeps the service limited, if less strictly, without Redis."""

    MAX_BUCKETS = 10_000

    def __init__(self) -> None:
        self._lock = Lock()
        self._buckets: dict[str, deque[int]] = {}

    def count(self, name: str, limit: int, window_ms: int, wanted: int, ahead: int, back: int) -> _Count:
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            if len(self._buckets) > self.MAX_BUCKETS:
                self._buckets.clear()
            times = self._buckets.setdefault(name, deque())
            for _ in range(min(back, len(times))):
                times.pop()
            while times and times[0] <= now_ms - window_ms:
                times.popleft()
            room = limit - len(times)
            taken = min(wanted + ahead, room) if wanted <= room else 0
            times.extend([now_ms] * taken)
            oldest = times[0] if times else now_ms
            return _Count(taken, room - taken, oldest + window_ms, now_ms)


_memory = _MemoryWindow()
