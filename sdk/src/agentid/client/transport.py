"""One call carried out: what is sent, when it is tried again, and the two transports.

The rule of tries is one coroutine for both: what the blocking transport gives it needs no awaiting.
"""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from inspect import isawaitable
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

from agentid.client.records import json_of
from agentid.errors import PASSING, ConfigurationError, Conflict, ServiceError, UnexpectedAnswer, Unreachable

T = TypeVar("T")
LOOPBACK = ("localhost", "127.0.0.1", "::1")
LONGEST_MESSAGE = 500


class Prove(Protocol):
    """Makes a DPoP proof for a method and a URL, as `DpopKey.proof` does."""

    def __call__(self, method: str, url: str, /, *, nonce: str | None = None) -> str: ...


@dataclass(frozen=True)
class Request:
    """A call of one endpoint.

    `key` is the Idempotency-Key; an empty one asks the transport to make one, None says that the endpoint
    takes none. `repeatable` says that a second try does no harm even without a key. `prove` makes a proof of
    possession for each try, with the `nonce` that the service asked for.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    key: str | None = None
    repeatable: bool = False
    prove: Prove | None = field(default=None, repr=False)
    nonce: str | None = None

    @property
    def may_repeat(self) -> bool:
        """A proof that was given ready-made counts once only."""
        is_repeatable = self.method == "GET" or self.repeatable or self.key is not None
        return is_repeatable and "DPoP" not in self.headers


@dataclass(frozen=True)
class Retries:
    """How often and how long to try: `total_seconds` bounds the waits, `first_wait` doubles with each try."""

    tries: int = 5
    first_wait: float = 0.2
    longest_wait: float = 20.0
    total_seconds: float = 60.0


def completed(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end that never waits for an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("the coroutine waits for an event loop")


async def settled(found: Awaitable[T] | T) -> T:
    """The result of a call, which an async one's is awaited for."""
    return await found if isawaitable(found) else found


async def carried_out(
    request: Request,
    retries: Retries,
    once: Callable[[Request], Awaitable[httpx.Response] | httpx.Response],
    pause: Callable[[float], Awaitable[None] | None],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> httpx.Response:
    """Send `once` and again until the call ends. Raises: ServiceError, Unreachable, UnexpectedAnswer."""
    request = replace(request, key=str(uuid4())) if request.key == "" else request
    started = clock()
    for attempt in range(1, retries.tries + 1):
        error: ServiceError | Unreachable
        try:
            reply = await settled(once(request))
            if (nonce := _nonce_asked_for(request, reply)) is not None:
                request = replace(request, nonce=nonce)
                reply = await settled(once(request))
            if reply.is_success:
                return reply
            error = _failure(reply)
        except httpx.HTTPError as failure:
            error = Unreachable(f"{type(failure).__name__}: {failure}")
        wait = _wait(error, attempt, retries)
        is_last = attempt == retries.tries or clock() - started + wait > retries.total_seconds
        # An earlier try with the same key may still be at work.
        is_own = request.key is not None and isinstance(error, Conflict) and error.retry_after is not None
        is_passing = is_own or isinstance(error, PASSING)
        if is_last or not (request.may_repeat and is_passing):
            raise error
        await settled(pause(wait))
    raise AssertionError("unreachable")


def _nonce_asked_for(request: Request, reply: httpx.Response) -> str | None:
    """The nonce with which a refused proof may be made again (RFC 9449 §8); None if there is none."""
    if request.prove is None or reply.status_code not in (400, 401):
        return None
    nonce: str | None = reply.headers.get("dpop-nonce")
    return None if nonce == request.nonce else nonce


def _failure(reply: httpx.Response) -> ServiceError:
    """The error for an answer that is no success."""
    if reply.is_redirect:
        raise UnexpectedAnswer(f"{reply.status_code}: redirects are not followed; correct the base URL")
    try:
        body = json_of(reply)
    except UnexpectedAnswer:
        body = None
    body = body if isinstance(body, dict) else {}
    error, words = (
        each if isinstance(each := body.get(name), str) else None for name in ("error", "error_description")
    )
    return ServiceError.kind_for(reply.status_code)(
        reply.status_code,
        (words or error or reply.reason_phrase)[:LONGEST_MESSAGE],
        error=error if words is not None else None,  # OAuth's code, beside words for people
        retry_after=retry_after(reply, now=datetime.now(UTC)),
        request_id=reply.headers.get("x-request-id"),
    )


def retry_after(answer: httpx.Response, *, now: datetime) -> float | None:
    """Seconds to wait, of a number or a date (RFC 9110 §10.2.3); None if the answer does not say."""
    value = answer.headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return float(value[:10])
    try:
        moment = parsedate_to_datetime(value)
        moment = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return max((moment - now).total_seconds(), 0.0)


def _wait(error: ServiceError | Unreachable, attempt: int, retries: Retries) -> float:
    """What the service asks for, or a random part of a wait that doubles, and at least half of it."""
    if isinstance(error, ServiceError) and error.retry_after is not None:
        return error.retry_after
    ceiling = min(retries.first_wait * 2.0 ** (attempt - 1), retries.longest_wait)
    return ceiling * (0.5 + random.random() / 2)  # noqa: S311  (jitter, not a secret)


@dataclass(frozen=True)
class Configuration:
    """Where the service is, and as whom to call it; the API key is in no repr."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 10.0
    retries: Retries = field(default_factory=Retries)
    allow_http: bool = False

    def __post_init__(self) -> None:
        try:
            url = urlsplit(self.base_url)
            httpx.Request("GET", self.base_url)
        except (ValueError, httpx.InvalidURL):
            raise ConfigurationError("base_url: not a URL") from None
        is_safe = url.scheme == "https" or (
            url.scheme == "http" and (self.allow_http or url.hostname in LOOPBACK)
        )
        if not is_safe or not url.hostname or "@" in url.netloc or url.query or url.fragment:
            raise ConfigurationError("base_url: https://, or http:// to this machine, and nothing but a path")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise ConfigurationError("api_key: not an API key")

    @classmethod
    def of(cls, base_url: str | None, api_key: str | None, **more: Any) -> Self:
        """Of the arguments, or else of AGENTID_BASE_URL and AGENTID_API_KEY."""
        base_url = base_url or os.environ.get("AGENTID_BASE_URL")
        if not base_url:
            raise ConfigurationError("base_url: give it, or set AGENTID_BASE_URL")
        key = api_key or os.environ.get("AGENTID_API_KEY") or None
        return cls(base_url.rstrip("/"), key, **more)

    def http(self, request: Request) -> dict[str, Any]:
        """The arguments with which httpx builds the request."""
        own = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        own |= {"Idempotency-Key": request.key} if request.key else {}
        url = self.base_url + request.path
        own |= {"DPoP": request.prove(request.method, url, nonce=request.nonce)} if request.prove else {}
        return {
            "method": request.method,
            "url": url,
            "params": dict(request.query) or None,
            "content": request.content,
            "headers": own | dict(request.headers),
        }


class Transport:
    """Carries requests out and blocks meanwhile; safe to share between threads."""

    run = staticmethod(completed)
    pause = staticmethod(time.sleep)

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._http = httpx.Client(timeout=configuration.timeout)

    def send(self, request: Request) -> httpx.Response:
        return completed(carried_out(request, self.configuration.retries, self._once, time.sleep))

    def _once(self, request: Request) -> httpx.Response:
        return self._http.request(**self.configuration.http(request))

    def close(self) -> None:
        self._http.close()


class AsyncTransport:
    """Carries requests out in an event loop."""

    pause = staticmethod(asyncio.sleep)

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._http = httpx.AsyncClient(timeout=configuration.timeout)

    @staticmethod
    def run(work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return work

    async def send(self, request: Request) -> httpx.Response:
        return await carried_out(request, self.configuration.retries, self._once, asyncio.sleep)

    async def _once(self, request: Request) -> httpx.Response:
        return await self._http.request(**self.configuration.http(request))

    async def close(self) -> None:
        await self._http.aclose()
