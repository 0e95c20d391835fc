"""Comparison of JSON values."""

import json
from typing import Any


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; 1, 1.0 and true differ, unlike in Python."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
