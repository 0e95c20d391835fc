"""Whom the rate limits count, for DRF's views."""

from typing import Any

from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from compliance.api import gate
from compliance.api.gate import GateRequest
from compliance.api.rate_limits import hit
from compliance.api.rest.requests import credential_of


class WindowThrottle(BaseThrottle):
    """Base of the throttles: a subclass names its bucket and whom it counts."""

    bucket = ""

    def identity(self, request: Request) -> str:
        return gate.client_address(GateRequest.of(request))

    def allow_request(self, request: Request, view: Any) -> bool:
        limit = hit(self.bucket, self.identity(request))
        request.rate_limit = limit  # type: ignore[attr-defined]
        self.limit = limit
        return limit.allowed

    def wait(self) -> float:
        return self.limit.retry_after


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
        return str(key.id) if key else gate.client_address(GateRequest.of(request))


class EventsThrottle(KeyThrottle):
    """Event ingest, for each API key, apart from its other calls."""

    bucket = "events"


class GatewayThrottle(KeyThrottle):
    """Decisions for gateways, for each API key: one for each request that passes the gateway."""

    bucket = "gateway"
