"""Lanes: ordinary requests of one kind are answered in the event loop, past Django's handler and the threads.

A view stays the door: a lane takes what is plain and hands everything else to it, untouched. What a lane
answers is word for word what the view would answer.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, Protocol

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from compliance.api import exceptions
from compliance.api.answers import Answer, Headers, json_answer
from compliance.api.rate_limits import Verdict


class Request(NamedTuple):
    """What a lane is given; `headers` are lower-case and none is there twice, `address` is the peer's."""

    path: str
    query: str
    address: str
    scheme: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_secure(self) -> bool:
        """Whether the client came by HTTPS, as Django tells it."""
        trusted: tuple[str, str] | None = settings.SECURE_PROXY_SSL_HEADER
        if trusted is not None:
            said = self.headers.get(trusted[0].removeprefix("HTTP_").replace("_", "-").lower())
            if said:
                return said.partition(",")[0].strip() == trusted[1]
        return self.scheme == "https"

    @property
    def is_for_us(self) -> bool:
        """Whether its Host is one that Django accepts."""
        return is_allowed(self.headers.get("host", ""))


class Lane(Protocol):
    """A way past the threads for one kind of request.

    A `path` that ends in a slash stands for every address one step below it.
    """

    method: str
    path: str

    def warm(self) -> None:
        """Begin, before the first request, what that one would else wait for; it returns at once."""

    async def answer(self, request: Request) -> Answer | None:
        """The answer, or None where the application has to give it."""

    def close(self) -> None:
        """Finish what was begun."""


@lru_cache(maxsize=64)
def is_allowed(host: str) -> bool:
    """Whether `ALLOWED_HOSTS` has it."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def limit_headers(verdict: Verdict) -> Headers:
    """How the caller stands against the rate limit, for an answer that was let through."""
    return [
        ("x-ratelimit-limit", str(verdict.limit)),
        ("x-ratelimit-remaining", str(verdict.remaining)),
        ("x-ratelimit-reset", str(verdict.reset_at)),
    ]


def refusal(error: Exception, headers: Mapping[str, str], *, is_secure: bool) -> Answer | None:
    """The error's answer with `headers`, as the view's handler has it; None for a defect."""
    found = exceptions.answer(error)
    if found is None:
        return None
    status, message, more = found
    return json_answer(status, {"error": message}, {**headers, **more}, is_secure=is_secure)
