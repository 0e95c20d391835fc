"""Answers as frozen dataclasses that tolerate what they do not know.

A record takes the fields it names from a JSON object and keeps the whole object in `raw`. A field that is
missing or of another kind is an `UnexpectedAnswer`; one that this version does not name is not an error.
"""

import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from agentid.errors import UnexpectedAnswer

LARGEST_INTEGER = 2**53
T = TypeVar("T")
R = TypeVar("R", bound="Record")


@dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON object of the service; `raw` holds it whole."""

    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list, newest first; `next_cursor` asks for the next."""

    items: tuple[T, ...]
    next_cursor: str | None


def record(kind: type[R], value: Any) -> R:
    """Read a JSON object as a record. Raises: UnexpectedAnswer."""
    if not isinstance(value, dict):
        raise UnexpectedAnswer(f"{kind.__name__}: not an object")
    found: dict[str, Any] = {"raw": value}
    for name, (hint, is_needed) in _shape(kind).items():  # type: ignore[arg-type]
        if name in value:
            found[name] = _read(hint, value[name], f"{kind.__name__}.{name}")
        elif is_needed:
            raise UnexpectedAnswer(f"{kind.__name__}: no {name}")
    return kind(**found)


@cache
def _shape(kind: type[Record]) -> dict[str, tuple[Any, bool]]:
    """The type of each field, and whether it must be there."""
    hints = get_type_hints(kind)
    own = (each for each in fields(kind) if each.name != "raw")
    return {each.name: (hints[each.name], each.default is MISSING) for each in own}


def _read(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is types.UnionType:
        return None if value is None else _read(arguments[0], value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(_read(arguments[0], each, where) for each in value)
    if origin is Mapping and isinstance(value, dict):
        return value
    if isinstance(hint, type) and issubclass(hint, Record):
        return record(hint, value)
    if hint is datetime and isinstance(value, str):
        return _moment(value, where)
    if hint is float and type(value) is int and abs(value) <= LARGEST_INTEGER:
        return float(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise UnexpectedAnswer(f"{where}: {type(value).__name__} is not what was expected")


def _moment(text: str, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UnexpectedAnswer(f"{where}: not a time") from None
    if moment.tzinfo is None:
        raise UnexpectedAnswer(f"{where}: a time without a zone")
    return moment
