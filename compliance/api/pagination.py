"""Keyset pages, newest first, that lose and repeat nothing when rows share a timestamp.

A cursor is the position of the last row given, written as an ISO 8601 date-time: its microseconds, then
39 more fractional digits that are the row's UUID as a decimal number. Read as numbers, the fractions sort
exactly as (timestamp, id) does, and a plain date-time means what it says: rows before that instant.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import BooleanField, F, Func, Model, QuerySet, TextField, Value
from django.db.models.functions import Cast, Length
from rest_framework.request import Request
from rest_framework.response import Response

from compliance.api.rest.parsers import check_value
from compliance.core.environments import Environment
from compliance.core.errors import Invalid
from compliance.core.identifiers import parse_id

DEFAULT_LIMIT = 50
MAX_LIMIT = 100
FULL_PAGE = 4 * 1024 * 1024  # octets of JSON that make a page full: a page is put together in memory
_ID_DIGITS = 39
_DATE_TIME = re.compile(
    r"(?P<seconds>\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2})(?:[.,](?P<fraction>\d{1,60}))?"
    r"(?P<zone>[Zz]|[+\- ]\d{2}:?\d{2})?",
    re.ASCII,
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

Row = TypeVar("Row", bound=Model)
Record = TypeVar("Record")


@dataclass(frozen=True)
class Cursor:
    """A position in a list ordered by (timestamp, id) descending; `id` None: before every row at `at`."""

    at: datetime
    id: UUID | None = None

    @classmethod
    def parse(cls, text: str, *, name: str = "before") -> "Cursor":
        """The position that a client sent; raises `Invalid`."""
        if _DATE.fullmatch(text):
            text += "T00:00:00Z"
        match = _DATE_TIME.fullmatch(text)
        if match is None:
            raise Invalid(f"{name} must be an ISO 8601 date-time")
        fraction = match["fraction"] or ""
        # A '+' that a query string turned into a space is still the zone's sign.
        zone = (match["zone"] or "Z").replace(" ", "+").upper()
        try:
            moment = datetime.fromisoformat(match["seconds"].upper().replace(" ", "T") + zone)
            moment = moment.astimezone(UTC) + timedelta(microseconds=int(fraction[:6].ljust(6, "0")))
        except (ValueError, OverflowError) as error:
            raise Invalid(f"{name} must be an ISO 8601 date-time") from error
        digits = fraction[6:]
        if not digits.strip("0"):
            return cls(moment)
        tie_break = min(int(digits[:_ID_DIGITS].ljust(_ID_DIGITS, "0")), 2**128 - 1)
        return cls(moment, UUID(int=tie_break))

    def __str__(self) -> str:
        digits = f"{self.id.int:0{_ID_DIGITS}d}" if self.id else ""
        moment = self.at.astimezone(UTC).replace(tzinfo=None)
        return moment.isoformat(timespec="microseconds") + digits + "Z"


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Rows of one page and the cursor of the next, None on the last."""

    rows: Sequence[Row]
    next_cursor: str | None

    @property
    def has_next(self) -> bool:
        return self.next_cursor is not None


@dataclass(frozen=True)
class Feed(Generic[Record]):
    """Rows oldest first; `position` stands for the next one to read, by whatever number the list has."""

    rows: Sequence[Record]
    position: UUID
    has_next: bool


def keyset_page(
    queryset: QuerySet[Any], *, cursor: Cursor | None, limit: int, field: str, heavy: str | None = None
) -> Page[Any]:
    """The `limit` newest rows of `queryset` past `cursor` by (`field`, id).

    Fewer where the JSON in their field `heavy` makes the page full before (`FULL_PAGE`), but one at least.
    """
    if cursor is not None and cursor.id is None:
        queryset = queryset.filter(**{f"{field}__lt": cursor.at})
    elif cursor is not None:
        # One comparison of rows, which an index answers as one range.
        row = Func(F(field), F("id"), function="ROW")
        position = Func(Value(cursor.at), Value(cursor.id), function="ROW")
        is_before = {"template": "%(expressions)s", "arg_joiner": " < ", "output_field": BooleanField()}
        queryset = queryset.filter(Func(row, position, **is_before))
    queryset = queryset.order_by(f"-{field}", "-id")
    rows, has_more = first_rows(queryset, limit=limit, heavy=heavy)
    return Page(rows, str(Cursor(getattr(rows[-1], field), rows[-1].pk)) if has_more else None)


def first_rows(
    queryset: QuerySet[Any], *, limit: int, heavy: str | None = None
) -> tuple[Sequence[Any], bool]:
    """Return the first rows that make a page, `heavy` as of `keyset_page`, and whether more follow."""
    if heavy is not None:
        lengths = queryset.values_list(Length(Cast(heavy, TextField())), flat=True)[:limit]
        octets = [length or 0 for length in lengths]
        limit = sum(before < FULL_PAGE for before in accumulate([0, *octets[:-1]]))
    rows = list(queryset[: limit + 1])
    return rows[:limit], len(rows) > limit


def newest_first(
    queryset: QuerySet[Any],
    request: Request,
    show: Callable[[Sequence[Any]], Collection[Any]],
    *,
    field: str,
    heavy: str | None = None,
) -> Response:
    """Answer with the page that `before` and `limit` ask for, its rows as `show` has them.

    `field` and `heavy` as of `keyset_page`. Raises: Invalid.
    """
    cursor, limit = read_cursor(request.query_params), read_limit(request.query_params)
    found = keyset_page(queryset, cursor=cursor, limit=limit, field=field, heavy=heavy)
    return page(show(found.rows), next_cursor=found.next_cursor, has_next_page=found.has_next)


def feed_response(feed: Feed[Any], shown: Collection[Any], field: str) -> Response:
    """Answer with a feed's rows as `shown`; the cursor has the last one's time beside its position."""
    at = getattr(feed.rows[-1], field) if feed.rows else datetime.fromtimestamp(0, UTC)
    cursor = str(Cursor(at, feed.position)) if feed.position.int else None
    return page(shown, next_cursor=cursor, has_next_page=feed.has_next)


def read_cursor(params: Mapping[str, str]) -> Cursor | None:
    """The `before` query parameter; raises `Invalid`."""
    text = params.get("before")
    return Cursor.parse(text) if text else None


def read_position(params: Mapping[str, str]) -> Cursor | None:
    """The `after` query parameter of a list that is read oldest first; raises `Invalid`.

    A position's `id` stands for the next row to read, whatever the list counts rows by.
    """
    if "before" in params:
        raise Invalid("before belongs to order=desc; with order=asc give after")
    text = params.get("after")
    return None if text is None else Cursor.parse(text, name="after")


def is_oldest_first(params: Mapping[str, str]) -> bool:
    """Whether the `order` query parameter is `asc`; raises `Invalid`."""
    return read_choice(params, "order", ("asc", "desc")) == "asc"


def read_moment(params: Mapping[str, str], name: str) -> datetime | None:
    """An optional ISO 8601 date-time (UTC without a zone); raises `Invalid`, for an empty one too."""
    text = params.get(name)
    return None if text is None else Cursor.parse(text, name=name).at


def read_limit(params: Mapping[str, str], *, cap: bool = True) -> int:
    """The `limit` query parameter, 50 without one; above 100 it is capped, or refused with `cap=False`."""
    text = params.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    is_number = re.fullmatch(r"\d{1,9}", text, re.ASCII) is not None and int(text) >= 1
    if not is_number or (int(text) > MAX_LIMIT and not cap):
        raise Invalid(f"limit must be a whole number from 1 to {MAX_LIMIT}")
    return min(int(text), MAX_LIMIT)


def read_size(params: Mapping[str, str], name: str) -> int | None:
    """An optional whole number from 0 to 2^53; raises `Invalid`, for an empty one too."""
    text = params.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"0|[1-9]\d{0,15}", text, re.ASCII):
        raise Invalid(f"{name} must be a whole number")
    return int(text)


def read_choice(params: Mapping[str, str], name: str, allowed: Sequence[str]) -> str | None:
    """An optional query parameter that must be one of `allowed`; raises `Invalid`, for an empty one too."""
    value = params.get(name)
    if value is None:
        return None
    if value not in allowed:
        raise Invalid(f"Invalid {name}: must be one of {', '.join(allowed)}")
    return value


def read_environment(params: Mapping[str, str]) -> Environment:
    """The `environment` query parameter, live without one; raises `Invalid`, for an empty one too."""
    chosen = read_choice(params, "environment", [item.value for item in Environment])
    return Environment(chosen or Environment.LIVE)


def read_flag(params: Mapping[str, str], name: str) -> bool | None:
    """An optional `true` or `false`; raises `Invalid`, for an empty one too."""
    value = read_choice(params, name, ("true", "false"))
    return None if value is None else value == "true"


def read_id(params: Mapping[str, str], name: str) -> UUID | None:
    """An optional UUID; raises `Invalid`, for an empty one too."""
    text = params.get(name)
    found = parse_id(text)
    if text is not None and found is None:
        raise Invalid(f"{name} must be a UUID")
    return found


def read_text(params: Mapping[str, str], name: str, *, max_length: int = 255) -> str | None:
    """An optional text filter; raises `Invalid` for text that no row can hold."""
    value = params.get(name)
    if value is None or value == "":
        return None
    if len(value) > max_length:
        raise Invalid(f"{name} must be at most {max_length} characters")
    check_value(value)
    return value


def ok(data: Any, *, status: int = 200) -> Response:
    """200 (or `status`) with `{"data": data}`."""
    return Response({"data": data}, status=status)


def page(items: Collection[Any], *, next_cursor: str | None, has_next_page: bool | None = None) -> Response:
    """200 with `{"data": [...], "next_cursor": …}`, and `has_next_page` where the endpoint tells it."""
    body: dict[str, Any] = {"data": items}
    if has_next_page is not None:
        body["has_next_page"] = has_next_page
    return Response({**body, "next_cursor": next_cursor})
