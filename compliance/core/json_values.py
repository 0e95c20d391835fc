"""Stored JSON values, and the comparison of two."""

import json
from typing import Any

import orjson

Json = dict[str, Any]
"""A JSON object."""


def from_stored(text: str | bytes) -> Any:
    """Return the value of JSON that PostgreSQL stores; its integers may be past what a float holds."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; 1, 1.0 and true differ, unlike in Python."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
