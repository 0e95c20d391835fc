"""The checks before every endpoint: host, HTTPS, key, scope, client address; over one type.

The fast path calls all of these functions. REST framework's authentication, permissions and throttles call
those for the key, the scope and the address; Django itself judges the host and HTTPS there.
"""

import ipaddress
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cache, lru_cache
from io import BytesIO
from typing import NamedTuple, Protocol
from uuid import UUID

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware
from rest_framework.request import Request

from compliance.core.errors import Forbidden

_JSON = "application/json"
JSON_TYPES = frozenset({_JSON, f"{_JSON}; charset=utf-8", f"{_JSON};charset=utf-8"})  # known without parsing


class Scope(StrEnum):
    """The permissions a key can hold; the value is what people write."""

    AGENTS_READ = "agents:read"
    AGENTS_WRITE = "agents:write"
    AGENTS_REINSTATE = "agents:reinstate"
    AGENTS_ENFORCEMENT = "agents:enforcement"
    CERTIFICATES_ISSUE = "certificates:issue"
    CERTIFICATES_REVOKE = "certificates:revoke"
    EVENTS_READ = "events:read"
    EVENTS_WRITE = "events:write"
    EVENTS_REVIEW = "events:review"
    DELEGATIONS_ISSUE = "delegations:issue"
    DELEGATIONS_READ = "delegations:read"
    DELEGATIONS_REVOKE = "delegations:revoke"
    TOKENS_INTROSPECT = "tokens:introspect"
    ISSUERS_READ = "issuers:read"
    ISSUERS_WRITE = "issuers:write"
    MESSAGES_SIGN = "messages:sign"
    WEBHOOKS_READ = "webhooks:read"
    WEBHOOKS_WRITE = "webhooks:write"
    SIGNALS_READ = "signals:read"
    SIGNALS_WRITE = "signals:write"
    AUDIT_READ = "audit:read"
    REPORTS_READ = "reports:read"
    REPORTS_WRITE = "reports:write"
    INCIDENTS_READ = "incidents:read"
    INCIDENTS_WRITE = "incidents:write"
    GATEWAY_AUTHORIZE = "gateway:authorize"
    GATEWAY_READ = "gateway:read"
    GATEWAY_WRITE = "gateway:write"
    DECISIONS_EVALUATE = "decisions:evaluate"


def scope_choices() -> list[tuple[str, str]]:
    """Return every scope as a choice; as a function, so that a new scope needs no migration."""
    return [(scope.value, scope.value) for scope in Scope]


class Credential(Protocol):
    """The API key behind a request, as views see it."""

    @property
    def id(self) -> UUID: ...

    @property
    def tenant_id(self) -> UUID: ...

    @property
    def scopes(self) -> Collection[str]: ...


class GateRequest(NamedTuple):
    """A request as far as the gate reads it: `headers` by lower-case name, the peer's `address`."""

    address: str
    scheme: str
    headers: Mapping[str, str]

    @classmethod
    def of(cls, request: HttpRequest | Request) -> "GateRequest":
        """Django's or REST framework's request as the gate reads it."""
        peer, scheme = request.META.get("REMOTE_ADDR", ""), request.META.get("wsgi.url_scheme", "http")
        return cls(peer, scheme, request.headers)  # Django's headers are found in any case


@lru_cache(maxsize=64)
def is_known_host(host: str) -> bool:
    """Return whether `ALLOWED_HOSTS` has the value of a Host header."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def is_secure(request: GateRequest) -> bool:
    """Return whether the client came by HTTPS; a proxy's header counts as `SECURE_PROXY_SSL_HEADER` says."""
    trusted: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
    if trusted is not None:
        sent = request.headers.get(trusted[0].removeprefix("HTTP_").replace("_", "-").lower())
        if sent:
            return sent.partition(",")[0].strip() == trusted[1]
    return request.scheme == "https"


def bearer_token(request: GateRequest) -> str | None:
    """The credentials of a Bearer header (RFC 6750 §2.1); None without the header or under another scheme."""
    scheme, _, credentials = request.headers.get("authorization", "").strip().partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" and credentials.strip() else None


def require_scope(holder: Credential, scope: str) -> None:
    """Raises: Forbidden if the credential lacks the scope."""
    if scope not in holder.scopes:
        raise Forbidden(f"This API key lacks the scope {scope}")


def client_address(request: GateRequest) -> str:
    """The client's IP address; X-Forwarded-For counts only behind TRUSTED_PROXIES, from the right."""
    address = request.address or "unknown"
    hops = [hop.strip() for hop in request.headers.get("x-forwarded-for", "").split(",") if hop.strip()]
    while hops and (proxy := _parsed(address)) and any(proxy in known for known in settings.TRUSTED_PROXIES):
        address = hops.pop()
    parsed = _parsed(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        # One subscriber commands a whole /64: count it as one client.
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed) if parsed else "unknown"


@lru_cache(maxsize=4_096)
def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address without a proxy's port, an IPv4-mapped one as IPv4; None if invalid."""
    if address.startswith("["):
        address = address[1:].partition("]")[0]
    elif address.count(":") == 1:
        address = address.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return getattr(parsed, "ipv4_mapped", None) or parsed


@cache
def security_headers(*, secure: bool) -> tuple[tuple[str, str], ...]:
    """The headers that Django's security middleware gives every JSON answer; `secure`: to an HTTPS client."""
    scheme = "https" if secure else "http"
    request = WSGIRequest({"REQUEST_METHOD": "GET", "wsgi.input": BytesIO(), "wsgi.url_scheme": scheme})
    response = HttpResponse(content_type="application/json")
    for middleware in (SecurityMiddleware, XFrameOptionsMiddleware):
        middleware(lambda _: HttpResponse()).process_response(request, response)
    return tuple((name.lower(), value) for name, value in response.headers.items())
