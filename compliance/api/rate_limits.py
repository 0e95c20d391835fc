"""Rate limits: an exact sliding window in Redis, and in the memory of the process while Redis is away.

A bucket is a log of how many requests were let through at which moment, newest first, and their total. No
window of 60 seconds ever holds more than the limit, wherever it begins. Counting takes one round trip and
amortised constant time: requests that are counted together are one entry. What a tenant sends is counted in
octets, over a day, whose log has one entry for each ten minutes.
"""

import logging
import math
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Final, NamedTuple

import msgspec
from django.conf import settings
from redis.exceptions import RedisError

from compliance.api.gate import Credential
from compliance.core.environments import Environment
from compliance.stores import redis

log = logging.getLogger(__name__)

MOST_IN_MEMORY = 10_000
OCTETS_OF_A_REQUEST: Final = 4 * 1024
"""A larger request counts as several: one for each so many octets of its body that it begins."""
OCTETS: Final = "octets"
"""The bucket of what a tenant sends in a day to be stored."""
COUNTED_BY_OCTETS: Final = frozenset({"key", "events"})
"""The limits of requests whose bodies are stored."""
_DAY_MS: Final = 24 * 3600 * 1000
_DAYS_STEP_MS: Final = 600_000

SCRIPT = redis.Script("""
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window, cost, more = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local step = tonumber(ARGV[5])
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
  local moment, count = math.ceil(now / step) * step, taken
  local newest = step > 1 and redis.call('LINDEX', log, 0)
  if newest and read(newest) == moment then
    local _, before = read(redis.call('LPOP', log))
    count = count + before
  end
  redis.call('LPUSH', log, string.format('%.0f:%.0f', moment, count))
  redis.call('PEXPIRE', log, window + step)
end
redis.call('SET', total, string.format('%.0f', used + taken), 'PX', window + step)
local leaves = oldest and read(oldest) or now
return {taken, limit - used - taken, leaves + window, now}
""")
"""Lets `cost` requests through or none, then up to `more` single ones. Entries are `step` ms apart."""


class Caller(NamedTuple):
    """Whom a limit counts: the name of the limit (a key of `RATE_LIMITS`), and a key's id or an address."""

    bucket: str
    identity: str


class RateLimit(msgspec.Struct, frozen=True):
    """A caller's state against a limit; `reset_at` is a Unix time, `retry_after` seconds."""

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


def refusal(limit: int, retry_after: int, *, now: datetime) -> RateLimit:
    """Refuse for want of one of `limit` places, of which one may be free in `retry_after` seconds."""
    reset_at = math.ceil(now.timestamp()) + retry_after
    return RateLimit(allowed=False, limit=limit, remaining=0, reset_at=reset_at, retry_after=retry_after)


def hit(bucket: str, identity: str, *, cost: int = 1) -> RateLimit:
    """Count `cost` requests of `identity` against `bucket`, all or none."""
    call = _call(Caller(bucket, identity), cost, 0)
    try:
        with redis.circuit.guarding():
            (answer,) = SCRIPT.run(call)
        count = _Count(*answer)
    except RedisError as error:
        log.debug("rate limits counted in memory: %s", type(error).__name__)
        count = in_memory.count(call)
    return _rate_limit(bucket, count, cost)


def hit_here(bucket: str, identity: str) -> RateLimit:
    """Count one request of `identity` in this process alone, without asking Redis."""
    return _rate_limit(bucket, in_memory.count(_call(Caller(bucket, identity), 1, 0)), 1)


def sender_of(environment: Environment, key: Credential) -> Caller:
    """The tenant whose octets a request with this key counts among."""
    return Caller(OCTETS, f"{environment.value}:{key.tenant_id}")


def cost_of(octets: int, bucket: str) -> int:
    """Return how many requests of the bucket a request with a body of so many octets counts as.

    One that is larger than the limit is let through alone.
    """
    limit: int = settings.RATE_LIMITS[bucket]
    return min(max(1, -(-octets // OCTETS_OF_A_REQUEST)), limit)


async def hit_each(client: redis.AsyncClient, asked: Sequence[tuple[Caller, int]]) -> list[RateLimit]:
    """Count so many requests of each caller, as that many `hit()`s would, in one round trip.

    A refused one may have counted in part.
    """
    wanted: Counter[Caller] = Counter()
    for caller, cost in asked:
        wanted[caller] += cost
    calls = [_call(caller, 0, count) for caller, count in wanted.items()]
    try:
        with redis.circuit.guarding():
            counts = [_Count(*answer) for answer in await client.run(SCRIPT, *calls)]
    except RedisError as error:
        log.debug("rate limits counted in memory: %s", type(error).__name__)
        counts = [in_memory.count(call) for call in calls]
    found, seen, results = dict(zip(wanted, counts, strict=True)), Counter[Caller](), []
    for caller, cost in asked:
        seen[caller] += cost
        count = found[caller]
        # A later request of the same caller finds less left; one for which nothing was left is refused.
        left = count.remaining + max(count.taken - seen[caller], 0)
        results.append(_rate_limit(caller.bucket, count._replace(remaining=left), seen[caller]))
    return results


class _Count(NamedTuple):
    """Counts let through and remaining, the time the oldest leaves the window, and the present time."""

    taken: int
    remaining: int
    reset_ms: int
    now_ms: int


class _ScriptCall(NamedTuple):
    """A call of `SCRIPT`: the number of keys, the keys, and the arguments."""

    keys: int
    log: str
    total: str
    limit: int
    window_ms: int
    cost: int
    more: int
    step_ms: int


def _call(caller: Caller, cost: int, more: int) -> _ScriptCall:
    name = f"{settings.SERVICE_NAME}:limit:{caller.bucket}:{caller.identity}"
    window_ms, step_ms = settings.RATE_LIMIT_WINDOW_SECONDS * 1000, 1
    if caller.bucket == OCTETS:
        window_ms, step_ms = _DAY_MS, _DAYS_STEP_MS
    limit = settings.RATE_LIMITS[caller.bucket]
    return _ScriptCall(2, f"{name}:log", f"{name}:total", limit, window_ms, cost, more, step_ms)


def _rate_limit(bucket: str, count: _Count, cost: int) -> RateLimit:
    return RateLimit(
        allowed=count.taken >= cost,
        limit=settings.RATE_LIMITS[bucket],
        remaining=count.remaining,
        reset_at=math.ceil(count.reset_ms / 1000),
        retry_after=max(1, math.ceil((count.reset_ms - count.now_ms) / 1000)),
    )


@dataclass
class _MemoryLog:
    """Counts of one caller's requests let through, by moment (ms), oldest first, and their total."""

    entries: deque[tuple[int, int]] = field(default_factory=deque)
    total: int = 0


class _MemoryWindow:
    """The same window for one process; keeps the service limited, if less strictly, without Redis."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.buckets: dict[str, _MemoryLog] = {}

    def count(self, call: _ScriptCall) -> _Count:
        """As `SCRIPT`."""
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            if len(self.buckets) > MOST_IN_MEMORY:
                self.buckets.clear()
            log = self.buckets.setdefault(call.log, _MemoryLog())
            while log.entries and log.entries[0][0] <= now_ms - call.window_ms:
                log.total -= log.entries.popleft()[1]
            room = call.limit - log.total
            taken = min(call.cost + call.more, room) if call.cost <= room else 0
            if taken > 0:
                log.total += taken
                moment, before = -(-now_ms // call.step_ms) * call.step_ms, 0
                if log.entries and log.entries[-1][0] == moment:
                    before = log.entries.pop()[1]
                log.entries.append((moment, before + taken))
            oldest = log.entries[0][0] if log.entries else now_ms
            return _Count(taken, room - taken, oldest + call.window_ms, now_ms)


in_memory = _MemoryWindow()
