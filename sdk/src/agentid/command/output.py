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

    def data(self, fields: Mapping[str, Any]) -> None:
        """Write one object; from others, control characters are written as their escapes."""
        if self.as_json:
            lines = [json.dumps(fields, ensure_ascii=True, default=str)]
        else:
            width = max(map(len, fields), default=0)
            lines = [f"{name:<{width}}  {_plain(value)}" for name, value in fields.items()]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    def row(self, fields: Mapping[str, Any]) -> None:
        """Write one object of many on a line."""
        if self.as_json:
            self.data(fields)
        else:
            sys.stdout.write("  ".join(map(_plain, fields.values())) + "\n")
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Write what is no data."""
        sys.stderr.write(f"agentid: {_plain(text)}\n")


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    text = "-" if value is None else str(value)
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
