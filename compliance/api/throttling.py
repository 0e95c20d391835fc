"""Rate limits: an exact sliding window in Redis, and in the process's memory while Redis is away.

A bucket is a list of the times of the requests let through, newest first. A request is let through
when fewer than the limit stand inside the window, so no window of 60 seconds ever holds more than the
limit, wherever it begins. One script, one round trip, amortised constant time.
"""

import ipaddress
import logging
import math
import time
from collections import deque
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from compliance import redis
from compliance.api.requests import credential_of

log = logging.getLogger(__name__)

_SCRIPT = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local oldest = redis.call('LINDEX', KEYS[1], -1)
while oldest and tonumber(oldest) <= now - window do
  redis.call('RPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], -1)
end
local used = redis.call('LLEN', KEYS[1])
local allowed = 0
if used < limit then
  allowed, used = 1, used + 1
  redis.call('LPUSH', KEYS[1], now)
  redis.call('PEXPIRE', KEYS[1], window)
end
return {allowed, limit - used, (oldest and tonumber(oldest) or now) + window, now}
"""


@dataclass(frozen=True)
class Verdict:
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


def hit(bucket: str, identity: str, *, limit: int) -> Verdict:
    """Count one request of `identity` against `bucket`."""
    window_ms = settings.RATE_LIMIT_WINDOW_SECONDS * 1000
    name = f"{settings.SERVICE_NAME}:limit:{bucket}:{identity}"
    try:
        allowed, remaining, reset_ms, now_ms = redis.circuit.call(
            lambda: _script()(keys=[name], args=[limit, window_ms])
        )
    except RedisError as error:
        log.debug("rate limits counted in memory: %s", type(error).__name__)
        allowed, remaining, reset_ms, now_ms = _memory.hit(name, limit, window_ms)
    retry_after = max(1, math.ceil((reset_ms - now_ms) / 1000))
    return Verdict(bool(allowed), limit, remaining, math.ceil(reset_ms / 1000), retry_after)


@cache
def _script() -> Any:
    return redis.client().register_script(_SCRIPT)


class _MemoryWindow:
    """The same window for one process; keeps the service limited, if less strictly, without Redis."""

    MAX_BUCKETS = 10_000

    def __init__(self) -> None:
        self._lock = Lock()
        self._buckets: dict[str, deque[int]] = {}

    def hit(self, name: str, limit: int, window_ms: int) -> tuple[int, int, int, int]:
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            if len(self._buckets) > self.MAX_BUCKETS:
                self._buckets.clear()
            times = self._buckets.setdefault(name, deque())
            while times and times[0] <= now_ms - window_ms:
                times.popleft()
            allowed = len(times) < limit
            if allowed:
                times.append(now_ms)
            oldest = times[0] if times else now_ms
            return int(allowed), limit - len(times), oldest + window_ms, now_ms


_memory = _MemoryWindow()


def client_address(request: HttpRequest | Request) -> str:
    """The caller's IP address; X-Forwarded-For counts only behind TRUSTED_PROXIES, from the right."""
    address = request.META.get("REMOTE_ADDR", "") or "unknown"
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "")
    hops = [hop.strip() for hop in forwarded.split(",") if hop.strip()]
    while hops and _is_trusted(address):
        address = hops.pop()
    return _normalised(address)


def _normalised(address: str) -> str:
    parsed = _parsed(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        # One subscriber commands a whole /64: count it as one client.
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed) if parsed else "unknown"


def _is_trusted(address: str) -> bool:
    parsed = _parsed(address)
    return parsed is not None and any(
        parsed in ipaddress.ip_network(proxy, strict=False) for proxy in settings.TRUSTED_PROXIES
    )


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address, an IPv4 one that a dual-stack socket shows as IPv6 as itself; None for what is none."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


class WindowThrottle(BaseThrottle):
    """Base of the throttles: a subclass names its bucket and whom it counts."""

    bucket = ""

    def identity(self, request: Request) -> str:
        return client_address(request)

    def allow_request(self, request: Request, view: Any) -> bool:
        verdict = hit(self.bucket, self.identity(request), limit=settings.RATE_LIMITS[self.bucket])
        request.rate_limit = verdict  # type: ignore[attr-defined]
        self.verdict = verdict
        return verdict.allowed

    def wait(self) -> float:
        return self.verdict.retry_after


class VerifyThrottle(WindowThrottle):
    """100 requests in 60 s for each client address (interface specification, Limits)."""

    bucket = "verify"


class PublicThrottle(WindowThrottle):
    """The other endpoints that need no credentials, for each client address."""

    bucket = "public"


class KeyThrottle(WindowThrottle):
    """Authenticated calls, for each API key."""

    bucket = "key"

    def identity(self, request: Request) -> str:
        key = credential_of(request)
        return str(key.id) if key else client_address(request)


class EventsThrottle(KeyThrottle):
    """Event ingest, for each API key, apart from its other calls."""

    bucket = "events"
