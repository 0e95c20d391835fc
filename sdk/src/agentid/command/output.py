"""What the command writes: data on standard output, all else on standard error."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Output:
    """Writes data for people, or as JSON."""

    as_json: bool

    def data(self, **fields: Any) -> None:
        """Write one object; from others, control characters are written as their escapes."""
        width = max(map(len, fields), default=0)
        self._write(fields, "\n".join(f"{name:<{width}}  {_plain(value)}" for name, value in fields.items()))

    def row(self, **fields: Any) -> None:
        """Write one object of many on a line."""
        self._write(fields, "  ".join(map(_plain, fields.values())))

    def _write(self, fields: Mapping[str, Any], text: str) -> None:
        sys.stdout.write((json.dumps(fields, default=str) if self.as_json else text) + "\n")
        sys.stdout.flush()

    def note(self, text: str) -> None:
        """Write what is no data."""
        sys.stderr.write(f"agentid: {_plain(text)}\n")


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    text = "-" if value is None else str(value)
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
