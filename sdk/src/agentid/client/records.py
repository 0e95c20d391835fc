"""Answers as frozen dataclasses that tolerate what they do not know.

A record takes the fields it names from a JSON object and keeps the whole object in `raw`. A field that is
missing or of another kind is an `UnexpectedAnswer`; one that this version does not name is not an error.
"""

import json
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, dataclass_transform, get_args, get_origin, get_type_hints

import httpx

from agentid.errors import UnexpectedAnswer

LARGEST_INTEGER = 2**53


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON object of the service; `raw` holds it whole."""

    raw: Mapping[str, Any] = field(repr=False, compare=False, default_factory=dict)

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


def camel(name: str) -> str:
    """A name as the interface spells some: `agentId` for `agent_id`."""
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


def json_of(answer: httpx.Response) -> Any:
    """The answer's JSON. Raises: UnexpectedAnswer."""
    try:
        return json.loads(answer.content)
    except (ValueError, RecursionError):
        raise UnexpectedAnswer("not JSON") from None


def member(value: Any, name: str) -> Any:
    """A member of a JSON object. Raises: UnexpectedAnswer."""
    if not isinstance(value, dict) or name not in value:
        raise UnexpectedAnswer(f"no {name}")
    return value[name]


def read(hint: Any, value: Any, where: str) -> Any:
    """Read a JSON value as a type. Raises: UnexpectedAnswer."""
    if hint is Any:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is types.UnionType:
        return None if value is None else read(arguments[0], value, where)
    if origin is tuple and isinstance(value, list):
        return tuple(read(arguments[0], each, where) for each in value)
    if origin is Mapping and isinstance(value, dict):
        return {name: read(arguments[1], each, f"{where}.{name}") for name, each in value.items()}
    if isinstance(hint, type) and issubclass(hint, Record) and isinstance(value, dict):
        return _record(hint, value)
    if hint is datetime and isinstance(value, str):
        return _moment(value, where)
    if hint is float and type(value) is int and abs(value) <= LARGEST_INTEGER:
        return float(value)
    if isinstance(hint, type) and type(value) is hint:
        return value
    raise UnexpectedAnswer(f"{where}: {type(value).__name__} is not what was expected")


def _record(kind: type[Record], value: dict[str, Any]) -> Record:
    found: dict[str, Any] = {"raw": value}
    for name, (hint, is_needed) in _shape(kind).items():  # type: ignore[arg-type]
        sent = name if name in value else camel(name)
        if sent in value:
            found[name] = read(hint, value[sent], f"{kind.__name__}.{name}")
        elif is_needed:
            raise UnexpectedAnswer(f"{kind.__name__}: no {name}")
    return kind(**found)


@cache
def _shape(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """The type of each field, and whether it must be there."""
    hints = get_type_hints(kind)
    own = (each for each in fields(kind) if each.name != "raw")
    return {each.name: (hints[each.name], each.default is MISSING) for each in own}


def _moment(text: str, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UnexpectedAnswer(f"{where}: not a time") from None
    if moment.tzinfo is None:
        raise UnexpectedAnswer(f"{where}: a time without a zone")
    return moment
