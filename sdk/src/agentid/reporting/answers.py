"""What the service's answer to a batch means for each of its events."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

LONGEST_PAUSE = 300.0  # seconds; a longer Retry-After is asked again after these


class Outcome(Enum):
    """What became of a batch."""

    STORED = "stored"  # each event has its own result
    REFUSED = "refused"  # nothing was stored: send it again, any time
    UNKNOWN = "unknown"  # it may have been stored: send it again with the same key
    CONFLICT = "conflict"  # its key belongs to another content: neither sending nor dropping is safe


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


def interpret(*, status: int, headers: Mapping[str, str], body: bytes, count: int, now: datetime) -> Verdict:
    """Read the answer to a batch of `count` events; `headers` in lower case."""
    content = _json(body)
    if status == 200:
        results = content.get("data")
        if isinstance(results, list) and len(results) == count:
            return _each(results)
        return Verdict(Outcome.UNKNOWN, "the answer does not fit the batch")
    pause = _retry_after(headers.get("retry-after"), now)
    error = content.get("error")
    # Only the service's own errors say that nothing was stored; a proxy's say nothing.
    if not isinstance(error, str):
        return Verdict(Outcome.UNKNOWN, f"HTTP {status}", pause=pause)
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
        elif isinstance(status, int) and 400 <= status < 500 and status != 429:
            rejected[place] = status, str(result.get("error", ""))
        else:
            again.append(place)
    return Verdict(Outcome.STORED, sent=sent, rejected=rejected, again=again)


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds to wait, of a number of seconds or a date (RFC 9110 §10.2.3)."""
    if value is None:
        return None
    try:
        seconds = float(value) if value.isdecimal() else _seconds_until(value, now)
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_PAUSE)


def _seconds_until(value: str, now: datetime) -> float:
    moment = parsedate_to_datetime(value)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
