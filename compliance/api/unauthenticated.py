"""Requests without a valid credential, counted by their client's address, so that nobody tries keys for ever.

What an address has used up is remembered for as long as the window stays full: until then its requests are
refused without a look at Redis or the database.
"""

import math
from time import monotonic

from django.conf import settings
from django.http import HttpResponse

from compliance.api.exceptions import error_response, rate_limited
from compliance.api.rate_limits import Verdict, hit
from compliance.bounded import Bounded

API = "unauthenticated"
CONSOLE = "console"
"""A bucket of its own: who tries keys does not close the sign-in page to others behind the same address."""
KEPT = 10_000

_refused: Bounded[tuple[str, str], tuple[float, Verdict]] = Bounded(KEPT)


def count(bucket: str, address: str) -> Verdict:
    """Count one request of an address."""
    verdict = hit(bucket, address, limit=settings.RATE_LIMITS["unauthenticated"])
    if not verdict.allowed:
        _refused.put((bucket, address), (monotonic() + verdict.retry_after, verdict))
    return verdict


def refusal(bucket: str, address: str) -> Verdict | None:
    """The verdict while the address has no request left; None otherwise. It asks nobody."""
    found = _refused.get((bucket, address))
    left = found[0] - monotonic() if found is not None else 0
    if found is None or left <= 0:
        return None
    verdict = found[1]
    return Verdict(
        allowed=False,
        limit=verdict.limit,
        remaining=0,
        reset_at=verdict.reset_at,
        retry_after=max(1, math.ceil(left)),
    )


def too_many(verdict: Verdict) -> HttpResponse:
    """The 429, in the words of the views' own."""
    return error_response(429, rate_limited(verdict.retry_after), verdict.headers())


def forget() -> None:
    """Count every address anew."""
    _refused.clear()
