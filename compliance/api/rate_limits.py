"""Rate limits: an exact sliding window in Redis, and in the process's memory while Redis is away.

A bucket is a log of how many requests were let through at which moment, newest first, and their total. A
request is let through when fewer than the limit stand inside the window, so no window of 60 seconds ever
holds more than the limit, wherever it begins. One script, one round trip, amortised constant time: however
many are counted at once, they are one entry.

A busy caller's requests are counted some ahead: a process reserves as many as it may need in the next second
and lets them through without a round trip; what it did not need it gives back with its next count. The limit
is never exceeded, and may be felt a twentieth early.
"""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from redis.exceptions import RedisError

from compliance import redis
from compliance.bounded import Bounded
from compliance.loop_redis import LoopScript

log = logging.getLogger(__name__)

LEASE_SECONDS = 1.0
LARGEST_SHARE = 20
"""A reservation is at most the limit divided by this."""
FIRST_SHARE = 1_000
"""And so much more than was needed of the last one: a caller who begins in haste is soon served ahead."""
CLAIM_SECONDS = 2.0
KEPT_LEASES = 10_000

_SCRIPT = redis.Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local wanted, ahead, back = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local log, total = KEYS[1], KEYS[2]
local used = tonumber(redis.call('GET', total) or 0)
local function read(entry)
  local moment, count = string.match(entry, '(%d+):(%d+)')
  return tonumber(moment), tonumber(count)
end
if back > 0 then
  local at = redis.call('LPOS', log, ARGV[6])
  if at then
    local moment, count = read(ARGV[6])
    back = math.min(back, count)
    redis.call('LSET', log, at, moment .. ':' .. count - back)
    used = used - back
  end
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
if used + wanted <= limit then taken = math.min(wanted + ahead, limit - used) end
if taken > 0 then
  redis.call('LPUSH', log, now .. ':' .. taken)
  redis.call('PEXPIRE', log, window)
end
redis.call('SET', total, used + taken, 'PX', window)
local leaves = oldest and read(oldest) or now
return {taken, limit - used - taken, leaves + window, now}
""")


Calls = Mapping[str, tuple[int, int, int, str]]
"""By name: how many are wanted, ahead and back, and the entry of these."""


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
    """Requests counted ahead for one caller by this process, to be let through within a second.

    `entry` is what stands for them in the caller's log.
    """

    def __init__(self, verdict: Verdict, count: int, entry: str = "") -> None:
        self.entry = entry
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
            # A claim lapses, so that one whose renewal failed does not block the next for good.
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


def hit_here(bucket: str, identity: str, *, limit: int) -> Verdict:
    """Count one request of `identity` in this process alone, without asking Redis."""
    name = _name(bucket, identity)
    window_ms = settings.RATE_LIMIT_WINDOW_SECONDS * 1000
    return _verdict(_memory.count(name, limit, window_ms, 1, 0, 0), limit, 1)


async def hit_each(
    script: LoopScript, bucket: str, identities: Sequence[str], *, limit: int
) -> list[Verdict]:
    """Count one request for each of the identities, as as many `hit()`s would, in one round trip.

    It is for the event loop; `script` is `loop_script()`'s.
    """
    calls = _as_many_as_fit(bucket, identities)
    try:
        with redis.circuit.guarding():
            answers = await script.run(*_asked(calls, limit))
    except RedisError as error:
        return _shared(bucket, identities, limit, _count_in_memory(calls, limit, error))
    return _shared(bucket, identities, limit, _counted(calls, answers))


def loop_script() -> LoopScript:
    """What `hit_each()` asks Redis with, for one caller at a time."""
    return LoopScript(_SCRIPT)


def _shared(
    bucket: str, identities: Sequence[str], limit: int, counts: Mapping[str, "_Count"]
) -> list[Verdict]:
    """Each one's verdict, in order, where those of one identity were counted together."""
    seen: Counter[str] = Counter()
    verdicts = []
    for identity in identities:
        count, before = counts[_name(bucket, identity)], seen[identity]
        seen[identity] += 1
        # Those who come later find less left; those for whom nothing was left are refused.
        after = max(count.taken - before - 1, 0)
        verdicts.append(_verdict(count, limit, before + 1, after))
    return verdicts


def renew(bucket: str, identity: str, *, limit: int) -> None:
    """Reserve for the next second, after `claim_renewal()`; the present reservation serves until then."""
    _hit_ahead(_name(bucket, identity), limit, 0)


def claim_renewal(bucket: str, identity: str, *, when_due: bool = True) -> bool:
    """Whether the caller's reservation is due to be renewed, or none is there; true once, so act upon it."""
    lease = _leases.get(_name(bucket, identity))
    return lease is None or lease.claim_renewal(when_due=when_due)


def _hit_ahead(name: str, limit: int, cost: int) -> Verdict:
    last = _leases.get(name) or Lease(_NOBODY, 0)
    # A reservation is renewed when half of it is gone, so that the next one soon lasts for its whole second.
    reserve = min(2 * last.taken + limit // FIRST_SHARE + 1, limit // LARGEST_SHARE)
    # What goes on serving is no more than is sure to be counted anew.
    kept = reserve if cost == 0 else 0
    back = last.shrink(kept)
    count = _count(name, limit, cost, ahead=reserve, back=back, entry=last.entry)
    verdict = _verdict(count, limit, cost)
    # What was taken meanwhile of that which had just been returned.
    owed = max(min(back, kept) - last.close(), 0)
    reserved = max(count.taken - cost - owed, 0)
    _leases.put(name, Lease(verdict, reserved, count.entry))
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


def forget() -> None:
    """Count every caller anew, as far as this process remembers."""
    _leases.clear()
    _memory.clear()


@lru_cache(maxsize=KEPT_LEASES)
def _name(bucket: str, identity: str) -> str:
    return f"{settings.SERVICE_NAME}:limit:{bucket}:{identity}"


class _Count(NamedTuple):
    """How many were let through, how many remain, when the oldest leaves the window, and the time."""

    taken: int
    remaining: int
    reset_ms: int
    now_ms: int

    @property
    def entry(self) -> str:
        """What stands for them in the log."""
        return f"{self.now_ms}:{self.taken}"


def _verdict(count: _Count, limit: int, cost: int, after: int = 0) -> Verdict:
    """What a count says of who asked for `cost`; `after`: so many of it are for those who come later."""
    return Verdict(
        allowed=count.taken >= cost,
        limit=limit,
        remaining=count.remaining + after,
        reset_at=math.ceil(count.reset_ms / 1000),
        retry_after=max(1, math.ceil((count.reset_ms - count.now_ms) / 1000)),
    )


def _count(name: str, limit: int, wanted: int, *, ahead: int = 0, back: int = 0, entry: str = "") -> _Count:
    """Let `wanted` through or none, and up to `ahead` more, once `back` of those of `entry` are returned."""
    calls = {name: (wanted, ahead, back, entry)}
    return _count_each(calls, limit)[name]


def _as_many_as_fit(bucket: str, identities: Sequence[str]) -> Calls:
    """Let through as many for each identity as there is room for."""
    return {_name(bucket, one): (0, wanted, 0, "") for one, wanted in Counter(identities).items()}


def _count_each(calls: Calls, limit: int) -> dict[str, _Count]:
    asked = _asked(calls, limit)
    try:
        answers = redis.circuit.call(lambda: _SCRIPT.run(*asked))
    except RedisError as error:
        return _count_in_memory(calls, limit, error)
    return _counted(calls, answers)


def _asked(calls: Calls, limit: int) -> list[tuple[Any, ...]]:
    """What the script is called with."""
    window_ms = settings.RATE_LIMIT_WINDOW_SECONDS * 1000
    return [(2, f"{name}:log", f"{name}:total", limit, window_ms, *call) for name, call in calls.items()]


def _count_in_memory(calls: Calls, limit: int, error: RedisError) -> dict[str, _Count]:
    log.debug("rate limits counted in memory: %s", type(error).__name__)
    window_ms = settings.RATE_LIMIT_WINDOW_SECONDS * 1000
    return {
        name: _memory.count(name, limit, window_ms, wanted, ahead, back)
        for name, (wanted, ahead, back, _) in calls.items()
    }


def _counted(calls: Calls, answers: Sequence[Any]) -> dict[str, _Count]:
    return {name: _Count(*answer) for name, answer in zip(calls, answers, strict=True)}


class _MemoryLog:
    """How many requests of one caller were let through at which moment (ms), oldest first."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, int]] = deque()
        self.total = 0

    def add(self, moment: int, count: int) -> None:
        """Count requests at a moment; a negative number takes back the newest."""
        self.total += count
        while count < 0 and self._entries:
            moment, newest = self._entries.pop()
            count += newest
        if count > 0:
            self._entries.append((moment, count))

    def leave_behind(self, moment: int) -> None:
        """Forget what was counted up to a moment."""
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
        """Forget every bucket."""
        with self._lock:
            self._buckets.clear()

    def count(self, name: str, limit: int, window_ms: int, wanted: int, ahead: int, back: int) -> _Count:
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            if len(self._buckets) > self.MAX_BUCKETS:
                self._buckets.clear()
            entries = self._buckets.setdefault(name, _MemoryLog())
            entries.add(now_ms, -min(back, entries.total))
            entries.leave_behind(now_ms - window_ms)
            room = limit - entries.total
            taken = min(wanted + ahead, room) if wanted <= room else 0
            entries.add(now_ms, taken)
            return _Count(taken, room - taken, entries.oldest(now_ms) + window_ms, now_ms)


_memory = _MemoryWindow()
