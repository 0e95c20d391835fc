"""How the bodies of answers are read, and what an answer that is no success raises."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from agentid.client.records import Page, Record, record
from agentid.errors import ServiceError, UnexpectedAnswer

R = TypeVar("R", bound=Record)
LONGEST_MESSAGE = 500


def data(kind: type[R]) -> Callable[[httpx.Response], R]:
    """Read the record in `data`."""
    return lambda answer: record(kind, _member(answer, "data"))


def listed(kind: type[R]) -> Callable[[httpx.Response], tuple[R, ...]]:
    """Read the records in the list `data`."""
    return lambda answer: _records(kind, answer)


def page(kind: type[R]) -> Callable[[httpx.Response], Page[R]]:
    """Read the records in the list `data`, and the cursor of the next page."""
    return lambda answer: Page(_records(kind, answer), _cursor(answer))


def bare(kind: type[R]) -> Callable[[httpx.Response], R]:
    """Read a record that stands without an envelope."""
    return lambda answer: record(kind, json_of(answer))


def json_object(answer: httpx.Response) -> dict[str, Any]:
    """Read a JSON object as it is."""
    value = json_of(answer)
    if not isinstance(value, dict):
        raise UnexpectedAnswer("not a JSON object")
    return value


def data_object(answer: httpx.Response) -> dict[str, Any]:
    """Read the JSON object in `data` as it is."""
    value = _member(answer, "data")
    if not isinstance(value, dict):
        raise UnexpectedAnswer("data: not a JSON object")
    return value


def text(answer: httpx.Response) -> str:
    return answer.text


def octets(answer: httpx.Response) -> bytes:
    return answer.content


def nothing(answer: httpx.Response) -> None:
    """Read no body (204)."""


def json_of(answer: httpx.Response) -> Any:
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        raise UnexpectedAnswer("not JSON") from None


def refusal(answer: httpx.Response) -> ServiceError:
    """The error for an answer that is no success."""
    code, message = _words(answer)
    return ServiceError.kind_for(answer.status_code)(
        answer.status_code,
        message[:LONGEST_MESSAGE],
        error=code,
        retry_after=retry_after(answer, now=datetime.now(UTC)),
        request_id=answer.headers.get("x-request-id"),
    )


def retry_after(answer: httpx.Response, *, now: datetime) -> float | None:
    """Seconds to wait, of a number or a date (RFC 9110 §10.2.3); None if the answer does not say."""
    value = answer.headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return float(value[:10])
    try:
        moment = parsedate_to_datetime(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return max((moment - now).total_seconds(), 0.0)


def _words(answer: httpx.Response) -> tuple[str | None, str]:
    """OAuth's code, if there is one, and the words for people."""
    try:
        body = json_object(answer)
    except UnexpectedAnswer:
        return None, answer.reason_phrase
    error, description = body.get("error"), body.get("error_description")
    if isinstance(description, str):
        return (error if isinstance(error, str) else None), description
    return None, error if isinstance(error, str) else answer.reason_phrase


def _member(answer: httpx.Response, name: str) -> Any:
    body = json_object(answer)
    if name not in body:
        raise UnexpectedAnswer(f"no {name}")
    return body[name]


def _records(kind: type[R], answer: httpx.Response) -> tuple[R, ...]:
    rows = _member(answer, "data")
    if not isinstance(rows, list):
        raise UnexpectedAnswer("data: not a list")
    return tuple(record(kind, row) for row in rows)


def _cursor(answer: httpx.Response) -> str | None:
    cursor = _member(answer, "next_cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise UnexpectedAnswer("next_cursor: not a text")
    return cursor
