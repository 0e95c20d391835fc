"""Requests without a valid credential, counted by their client's address.

Once an address has used up its requests, it is refused without asking Redis until the window has room again.
"""

import math
from time import monotonic

import msgspec
from django.http import HttpRequest, HttpResponse

from compliance.api.exceptions import error_response, rate_limited
from compliance.api.rate_limits import RateLimit, hit
from compliance.core.bounded_cache import BoundedCache

LIMIT = "unauthenticated"
API = "api"
CONSOLE = "console"
"""Counted apart: a client that tries keys does not close the sign-in page to others at the same address."""
KEPT = 10_000

refused: BoundedCache[tuple[str, str], tuple[float, RateLimit]] = BoundedCache(KEPT)


def count(group: str, address: str) -> RateLimit:
    """Count one request of an address."""
    limit = hit(LIMIT, f"{group}:{address}")
    if not limit.allowed:
        refused.put((group, address), (monotonic() + limit.retry_after, limit))
    return limit


def refusal(group: str, address: str) -> RateLimit | None:
    """The limit while the address has no request left; None otherwise. It asks nobody."""
    found = refused.get((group, address))
    left = found[0] - monotonic() if found is not None else 0
    if found is None or left <= 0:
        return None
    return msgspec.structs.replace(found[1], remaining=0, retry_after=max(1, math.ceil(left)))


def too_many(request: HttpRequest, limit: RateLimit) -> HttpResponse:
    """The 429, in the words of the views' own."""
    return error_response(request, 429, rate_limited(limit.retry_after), limit.headers())
