"""Log lines: JSON, or text for a person; bounded in what clients can cause, without secrets."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from typing import Any, Final

import orjson

from compliance.core import environments
from compliance.observing import correlation
from compliance.observing.redaction import redact

CLIENT_FAULTS: Final = "django.security"  # prefix of the loggers of faulty requests
QUIET_SECONDS: Final = 60.0
LONGEST_TEXT: Final = 8_000
LONGEST_TRACEBACK: Final = 32_000
MARGIN: Final = 4_000
"""Characters beyond the longest that are still read for secrets."""
FIELDS: Final = ("tenant", "agent")
"""What a line may tell beside its message: `log.warning(…, extra={"tenant": …})`, or `correlation.bind()`."""


class ClientFaultFilter(logging.Filter):
    """Pass one line a minute for each kind of client fault, without its traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith(CLIENT_FAULTS):
            return True
        record.exc_info = record.exc_text = None
        with self._lock:
            now = monotonic()
            is_due = now >= self._said.get(record.name, -QUIET_SECONDS) + QUIET_SECONDS
            if is_due:
                self._said[record.name] = now
        return is_due


class LineFormatter(logging.Formatter):
    """A line's fields in their order; every text without secrets, and bounded.

    As a document (`LOG_FORMAT=json`), or as text for a person (`console`).
    """

    def __init__(self, style: str) -> None:
        if style not in ("json", "console"):
            raise ValueError(f"LOG_FORMAT is {style!r}, not json or console")
        super().__init__()
        self._show = _as_json if style == "json" else _as_text

    def format(self, record: logging.LogRecord) -> str:
        ids = correlation.current()
        told: dict[str, object] = dict(correlation.bound())
        told |= {name: record.__dict__[name] for name in FIELDS if name in record.__dict__}
        found: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": _clean(record.getMessage(), LONGEST_TEXT),
            "logger": record.name,
            "request_id": None if ids is None else ids.request_id,
            "trace_id": None if ids is None else ids.trace_id,
            "environment": getattr(environments.current_or_none(), "value", None),
            **{name: _clean(str(value), 100) for name, value in told.items()},
            "process": record.process,
        }
        if record.exc_info and record.exc_info[0] is not None:
            found["exception"] = _clean(self.formatException(record.exc_info), LONGEST_TRACEBACK)
        return self._show({name: value for name, value in found.items() if value is not None})


def _clean(text: str, most: int) -> str:
    if len(text) <= most:
        return redact(text)
    shown = redact(text[: most + MARGIN])
    if len(text) > most + MARGIN:
        # Half a secret at the cut is known by no form, and stands far ahead where much was redacted.
        shown = shown[:-MARGIN]
    return f"{shown[:most]}… ({len(text)} characters)"


def _as_json(line: Mapping[str, Any]) -> str:
    try:
        return orjson.dumps(line).decode()
    except orjson.JSONEncodeError:
        # A lone surrogate: no UTF-8 has it.
        return _as_json(
            {
                name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
                for name, value in line.items()
            }
        )


def _as_text(line: Mapping[str, Any]) -> str:
    """A line for a person; what it says cannot begin another line, a traceback follows below it."""
    ids = " ".join(f"{name}={line[name]}" for name in ("request_id", *FIELDS) if name in line)
    where = f"[{line.get('environment', '-')}]"
    head = f"{line['time']} {line['level'].upper()} {line['logger']} {where} {_escaped(line['event'])} {ids}"
    return "\n  ".join([head.rstrip(), *map(_escaped, line.get("exception", "").splitlines())])


def _escaped(text: str) -> str:
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
