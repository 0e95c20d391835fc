"""Sends one batch to `POST /v1/events/batch`, and reads what the answer means for each of its events."""

import encodings.idna  # noqa: F401  (else the first connection imports it)
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from threading import Lock
from typing import Any

import httpx

from agentid.client.records import json_of
from agentid.client.transport import Configuration, retry_after
from agentid.errors import UnexpectedAnswer

LONGEST_PAUSE = 300.0  # seconds; a longer Retry-After is asked again after these


class Outcome(Enum):
    """What became of a batch."""

    STORED = "stored"  # each event has its own result
    REFUSED = "refused"  # nothing was stored: send it again, any time
    UNKNOWN = "unknown"  # it may have been stored: send it again with the same key
    CONFLICT = "conflict"  # its key belongs to another content: neither sending nor dropping is safe


PATH = "/v1/events/batch"


@dataclass(frozen=True)
class Rejected:
    """An event that the service does not take, and why."""

    event: Mapping[str, Any]
    status: int
    error: str


@dataclass(frozen=True)
class Verdict:
    """A batch's outcome; `again` holds the places of events to send once more, in a batch of their own."""

    outcome: Outcome
    reason: str = ""
    sent: int = 0
    rejected: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    again: Sequence[int] = ()
    pause: float | None = None


def interpret(answer: httpx.Response, *, count: int, now: datetime) -> Verdict:
    """Read the answer to a batch of `count` events."""
    status = answer.status_code
    try:
        found = json_of(answer)
    except UnexpectedAnswer:
        found = None
    content: dict[str, Any] = found if isinstance(found, dict) else {}
    if status == 200:
        results = content.get("data")
        if isinstance(results, list) and len(results) == count:
            return _each(results)
        return Verdict(Outcome.UNKNOWN, "the answer does not fit the batch")
    asked = retry_after(answer, now=now)
    pause = None if asked is None else min(asked, LONGEST_PAUSE)
    error = content.get("error")
    # Only the service's own errors say that nothing was stored; a proxy's say nothing.
    if not isinstance(error, str):
        return Verdict(Outcome.UNKNOWN, f"HTTP {status}", pause=pause)
    # An error may come behind portions of the batch that are stored; its key has the service go on.
    if status >= 500 or (status == 409 and pause is not None):
        return Verdict(Outcome.UNKNOWN, f"HTTP {status}: {error}", pause=pause)
    if status == 409:
        return Verdict(Outcome.CONFLICT, error)
    if status in (400, 413, 415, 422):
        return Verdict(Outcome.STORED, rejected=dict.fromkeys(range(count), (status, error)))
    return Verdict(Outcome.REFUSED, f"HTTP {status}: {error}", pause=pause)


def _each(results: Sequence[Any]) -> Verdict:
    sent, rejected, again = 0, dict[int, tuple[int, str]](), list[int]()
    for place, result in enumerate(results):
        status = result.get("status") if isinstance(result, dict) else None
        if status == 201:
            sent += 1
        elif isinstance(status, int) and 400 <= status < 500 and status not in (409, 429):
            rejected[place] = status, str(result.get("error", ""))
        else:
            again.append(place)
    return Verdict(Outcome.STORED, sent=sent, rejected=rejected, again=again)


def connected(service: Configuration, tls: ssl.SSLContext) -> httpx.Client:
    """A connection for batches: each is tried once, and the reporter decides on the next try."""
    headers = {"Authorization": f"Bearer {service.api_key}", "Content-Type": "application/x-ndjson"}
    return httpx.Client(base_url=service.base_url, headers=headers, timeout=service.timeout, verify=tls)


def post(client: httpx.Client, key: str, lines: Sequence[bytes], *, connecting: Lock) -> Verdict:
    """Send the lines under an Idempotency-Key and read the answer; hold `connecting` to open a connection."""

    def trace(step: str, _about: object) -> None:
        if step.endswith((".connect_tcp.started", ".start_tls.started")):
            connecting.acquire()
        elif ".connect_tcp." in step or ".start_tls." in step:
            connecting.release()

    body = b"".join(line + b"\n" for line in lines)
    headers, extensions = {"Idempotency-Key": key}, {"trace": trace}
    try:
        answer = client.post(PATH, content=body, headers=headers, extensions=extensions)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        return Verdict(Outcome.REFUSED, type(error).__name__)
    except httpx.HTTPError as error:
        return Verdict(Outcome.UNKNOWN, type(error).__name__)
    return interpret(answer, count=len(lines), now=datetime.now(UTC))
