"""Whom the rate limits count, for DRF's views."""

import ipaddress
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from compliance.api.rate_limits import hit
from compliance.api.requests import credential_of


def client_address(request: HttpRequest | Request) -> str:
    """The caller's IP address; X-Forwarded-For counts only behind TRUSTED_PROXIES, from the right."""
    return address_behind(request.META.get("REMOTE_ADDR", ""), request.META.get("HTTP_X_FORWARDED_FOR", ""))


def address_behind(peer: str, forwarded: str) -> str:
    """As `client_address()`, of the peer's address and an X-Forwarded-For header."""
    address = peer or "unknown"
    hops = [hop.strip() for hop in forwarded.split(",") if hop.strip()]
    while hops and _is_trusted(address):
        address = hops.pop()
    return _normalised(address)


@lru_cache(maxsize=4_096)
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
    ahead = False

    def identity(self, request: Request) -> str:
        return client_address(request)

    def allow_request(self, request: Request, view: Any) -> bool:
        limit = settings.RATE_LIMITS[self.bucket]
        verdict = hit(self.bucket, self.identity(request), limit=limit, ahead=self.ahead)
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
    ahead = True
