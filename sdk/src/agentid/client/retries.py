"""When a call is tried again, as a conversation without I/O.

The conversation yields steps, `Send` or `Wait`, and receives the result of each. Two transports carry the
steps out: one blocks, one awaits.
"""

import random
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from uuid import uuid4

import httpx

from agentid.client.answers import refusal
from agentid.client.request import Request
from agentid.errors import RateLimited, ServiceError, Unavailable, UnexpectedAnswer, Unreachable

T = TypeVar("T")
REPEATED: Final = (RateLimited, Unavailable)


@dataclass(frozen=True)
class Retries:
    """How often and how long to try: `total_seconds` bounds the waits, `first_wait` doubles with each try."""

    tries: int = 5
    first_wait: float = 0.2
    longest_wait: float = 20.0
    total_seconds: float = 60.0


@dataclass(frozen=True)
class Send:
    """Send the request once."""

    request: Request[Any]


@dataclass(frozen=True)
class Wait:
    """Wait this long."""

    seconds: float


Conversation = Generator[Send | Wait, httpx.Response | httpx.HTTPError | None, T]


def conversation(
    request: Request[T], retries: Retries, *, clock: Callable[[], float] = time.monotonic
) -> Conversation[T]:
    """Carry one call to its end. Raises: ServiceError, Unreachable, UnexpectedAnswer."""
    request = replace(request, key=str(uuid4())) if request.key == "" else request
    started = clock()
    for attempt in range(1, retries.tries + 1):
        reply = yield Send(request)
        if (nonce := _nonce_asked_for(request, reply)) is not None:
            request = replace(request, nonce=nonce)
            reply = yield Send(request)
        if isinstance(reply, httpx.Response) and reply.is_success:
            return request.read(reply)
        error = _failure(reply)
        wait = _wait(error, attempt, retries)
        is_last = attempt == retries.tries or clock() - started + wait > retries.total_seconds
        if is_last or not _may_repeat(request, error):
            raise error
        yield Wait(wait)
    raise AssertionError("unreachable")


def _nonce_asked_for(request: Request[Any], reply: httpx.Response | httpx.HTTPError | None) -> str | None:
    """The nonce with which a refused proof may be made again (RFC 9449 §8); None if there is none."""
    if request.prove is None or not isinstance(reply, httpx.Response) or reply.status_code not in (400, 401):
        return None
    nonce: str | None = reply.headers.get("dpop-nonce")
    return None if nonce == request.nonce else nonce


def _failure(reply: httpx.Response | httpx.HTTPError | None) -> ServiceError | Unreachable:
    if not isinstance(reply, httpx.Response):
        return Unreachable(f"{type(reply).__name__}: {reply}")
    if reply.is_redirect:
        raise UnexpectedAnswer(f"{reply.status_code}: redirects are not followed; correct the base URL")
    return refusal(reply)


def _may_repeat(request: Request[Any], error: ServiceError | Unreachable) -> bool:
    return request.may_repeat and isinstance(error, (*REPEATED, Unreachable))


def _wait(error: ServiceError | Unreachable, attempt: int, retries: Retries) -> float:
    """What the service asks for, or a random part of a wait that doubles, and at least half of it."""
    if isinstance(error, ServiceError) and error.retry_after is not None:
        return error.retry_after
    ceiling = min(retries.first_wait * 2.0 ** (attempt - 1), retries.longest_wait)
    return ceiling * (0.5 + random.random() / 2)  # noqa: S311  (jitter, not a secret)
