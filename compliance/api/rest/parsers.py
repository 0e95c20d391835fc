"""JSON as the service reads it: stricter than `json.loads`, and never surprised by its input."""

import json
import re
from collections.abc import Mapping
from itertools import islice
from math import frexp, isfinite
from typing import IO, Any, Final

import msgspec
from django.conf import settings
from rest_framework.parsers import BaseParser

from compliance.core.errors import Invalid, TooLarge

MAX_DEPTH = 32
SHORT = 16_384  # bytes of a text whose numbers can't take `MOST_DIGITS` written out
MOST_DIGITS = 1 << 20
_SURROGATE = re.compile("[\ud800-\udfff]")
# Escapes that may spell a NUL or half a character.
_RISKY_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_BLANKS = (b" ", b"\n", b"\t", b"\r")
_UNSURE: Final = object()
PLAIN_LEVELS = 8  # nesting up to which a text is read the quick way; few go deeper


_Plain: Any = None | bool | int | float | str
for _ in range(PLAIN_LEVELS):
    _Plain = None | bool | int | float | str | list[_Plain] | dict[str, _Plain]
_decode: Final = msgspec.json.Decoder(_Plain).decode  # a JSON value of at most so many levels
_encode: Final = msgspec.json.Encoder().encode


def loads(raw: bytes) -> Any:
    """The value of a JSON text (RFC 8259); raises `Invalid` with a message for people.

    Refused beyond the grammar: duplicate names, NaN and Infinity, numbers that overflow, NUL and lone
    surrogates in strings, nesting past 32, integers of more than 4,300 digits. So are numbers such as `1e300`
    that together take more than a megabyte: PostgreSQL gives them back written out.
    """
    value = _loads_plain(raw)
    value = _loads_strictly(raw) if value is _UNSURE else value
    if len(raw) > SHORT and isinstance(value, dict | list) and _digits(value) > MOST_DIGITS:
        raise Invalid("Numbers must not take more than 1 MiB written out")
    return value


def _digits(value: Any) -> int:
    """Return about how many digits the numbers in an object or list gain when written without exponents."""
    total = 0
    for item in value.values() if isinstance(value, dict) else value:
        kind = type(item)
        if kind is float:
            total += abs(frexp(item)[1]) * 3 // 10
        elif kind is dict or kind is list:
            total += _digits(item)
    return total


def _loads_plain(raw: bytes) -> Any:
    """The value of a text that msgspec reads and that shows no sign of what we refuse; else `_UNSURE`.

    Where the value, written again, has as many name ends as the text, no name can have been there twice.
    """
    # What makes a name's end hard to tell is unsure.
    if any(blank in raw and blank + b":" in raw for blank in _BLANKS):
        return _UNSURE
    if b"\\" in raw and (b'\\\\"' in raw or _RISKY_ESCAPE.search(raw)):
        return _UNSURE
    try:
        value = _decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _UNSURE
    return value if _name_ends(_encode(value)) == _name_ends(raw) else _UNSURE


def _name_ends(text: bytes) -> int:
    """Count `":` in the text, which ends a member's name unless a backslash stands before it."""
    return text.count(b'":') - (text.count(b'\\":') if b"\\" in text else 0)


def _loads_strictly(raw: bytes) -> Any:
    """The same for any text, in the standard library's words where it is refused."""

    def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise Invalid("Invalid JSON: an object names the same member twice")
        return result

    def number(text: str) -> float:
        found = float(text)
        if isfinite(found):
            return found
        is_word = text[-1].isalpha()  # `json` knows NaN and Infinity
        said = f"{text} is not a JSON number" if is_word else "a number is out of range"
        raise Invalid(f"Invalid JSON: {said}")

    try:
        text = raw.decode("utf-8")
        value = json.loads(text, object_pairs_hook=unique_names, parse_constant=number, parse_float=number)
    except UnicodeDecodeError as error:
        raise Invalid("Request body is not valid UTF-8") from error
    except RecursionError as error:
        raise Invalid(f"JSON is nested deeper than {MAX_DEPTH} levels") from error
    except json.JSONDecodeError as error:
        raise Invalid(f"Invalid JSON: {error.msg} (line {error.lineno} column {error.colno})") from error
    except ValueError as error:
        raise Invalid("Invalid JSON: a number is out of range") from error
    check_value(value)
    return value


def check_value(value: Any, depth: int = 0) -> None:
    """Raise `Invalid` for text that PostgreSQL can't keep, or nesting past `MAX_DEPTH`."""
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, dict | list):
        if depth >= MAX_DEPTH:
            raise Invalid(f"JSON is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            for name, item in value.items():
                _check_text(name)
                check_value(item, depth + 1)
        else:
            for item in value:
                check_value(item, depth + 1)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise Invalid("Strings must not contain NUL characters")
    if not text.isascii() and _SURROGATE.search(text):
        raise Invalid("Strings must not contain lone surrogates")


def read_json(body: bytes) -> Any:
    """The value of a request's body, `{}` for an empty one. Raises: Invalid."""
    return loads(body) if body.strip() else {}


class StrictJSONParser(BaseParser):
    """`application/json` only; any other content type is a 415, a body over 1 MiB a 413."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return read_json(read_body(stream))


class NDJSONParser(BaseParser):
    """`application/x-ndjson`: one JSON value a line, blank lines left out; as `{member: [...]}`.

    A line that can't be read stands in its place as the `Invalid` that says why. Of more lines than
    `most_lines` one too many is read, which is enough to refuse them.
    """

    media_type = "application/x-ndjson"
    member = "items"
    most_lines = 1_000

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, list[Any]]:
        found: list[Any] = []
        lines = (line for line in read_body(stream).split(b"\n") if line.strip())
        for line in islice(lines, self.most_lines + 1):
            try:
                found.append(loads(line))
            except Invalid as error:
                found.append(error)
        return {self.member: found}


def read_body(stream: IO[bytes]) -> bytes:
    """The whole body; raises `TooLarge` past 1 MiB without reading further."""
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    raw = stream.read(limit + 1)
    if len(raw) > limit:
        raise TooLarge(f"Request body is larger than {limit} bytes")
    return raw
