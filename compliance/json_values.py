"""JSON values as JSON has them, where Python's `==` would take true for 1 and 1.0 for 1."""

from typing import Any


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are one: of the same types throughout; the order of members is none."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            same_json(value, other[name]) for name, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
