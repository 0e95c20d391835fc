"""Values of JSON: how they are written, stored and compared."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

Json = dict[str, Any]
"""A JSON object."""
MAX_OCTETS = 64 * 1024
"""Octets of JSON that a free-form object of a tenant may take: an event's details, an agent's metadata."""


def written(moment: datetime | None) -> str | None:
    """Return a moment as the API writes it: ISO 8601 in UTC, with a Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


def from_stored(text: str | bytes) -> Any:
    """Return the value of JSON that PostgreSQL stores; its integers may be past what a float holds."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def octets_of(value: Any) -> int:
    """Return the length of a value's shortest JSON."""
    return len(msgspec.json.encode(value))


def same_json(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same; 1, 1.0 and true differ, unlike in Python."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
