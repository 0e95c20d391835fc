"""Log lines: JSON by structlog, or text for a person; bounded in what clients can cause, without secrets."""

import logging
from collections.abc import Mapping, MutableMapping
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from typing import Any, Final

import orjson
import structlog
from structlog.stdlib import ProcessorFormatter

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
"""What a line may tell beside its message: `log.warning("…", extra={"tenant": …})`, or `bound()`."""

Line = MutableMapping[str, Any]


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


def bind(**fields: object) -> None:
    """Add `tenant` or `agent` to the lines of the current context."""
    structlog.contextvars.bind_contextvars(**{name: str(value) for name, value in fields.items()})


def unbind() -> None:
    """Take away what was bound in the current context."""
    structlog.contextvars.clear_contextvars()


def formatter(style: str) -> logging.Formatter:
    """The formatter of `LOG_FORMAT`: `json`, a document a line, or `console`. Raises: ValueError."""
    shapes = {"json": _as_json, "console": _as_text}
    if style not in shapes:
        raise ValueError(f"LOG_FORMAT is {style!r}, not json or console")
    return ProcessorFormatter(
        foreign_pre_chain=[structlog.contextvars.merge_contextvars, _add_fields],
        processors=[_described, shapes[style]],
    )


def _add_fields(logger: Any, method: str, line: Line) -> Line:
    record: logging.LogRecord = line["_record"]
    for name in FIELDS:
        if name in record.__dict__:
            line[name] = str(record.__dict__[name])
    return line


def _described(logger: Any, method: str, line: Line) -> Line:
    """The fields of a line in their order; every text without secrets, and bounded."""
    record: logging.LogRecord = line["_record"]
    ids = correlation.current()
    found: dict[str, Any] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "event": _clean(str(line.get("event", "")), LONGEST_TEXT),
        "logger": record.name,
        "request_id": None if ids is None else ids.request_id,
        "trace_id": None if ids is None else ids.trace_id,
        "environment": getattr(environments.current_or_none(), "value", None),
    }
    found |= {name: _clean(str(line[name]), 100) for name in FIELDS if name in line}
    found["process"] = record.process
    error = line.get("exc_info")
    if error and error[0] is not None:
        traceback = logging.Formatter().formatException(error)
        found["exception"] = _clean(traceback, LONGEST_TRACEBACK)
    return {name: value for name, value in found.items() if value is not None}


def _clean(text: str, most: int) -> str:
    if len(text) <= most:
        return redact(text)
    shown = redact(text[: most + MARGIN])
    if len(text) > most + MARGIN:
        # Half a secret at the cut is known by no form, and stands far ahead where much was redacted.
        shown = shown[:-MARGIN]
    return f"{shown[:most]}… ({len(text)} characters)"


def _as_json(logger: Any, method: str, line: Line) -> str:
    try:
        return orjson.dumps(line).decode()
    except orjson.JSONEncodeError:
        # A lone surrogate: no UTF-8 has it.
        shown = {name: _printable(value) for name, value in line.items()}
        return orjson.dumps(shown).decode()


def _printable(value: Any) -> Any:
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _as_text(logger: Any, method: str, line: Mapping[str, Any]) -> str:
    """A line for a person; what it says cannot begin another line, a traceback follows below it."""
    ids = " ".join(
        f"{name}={line[name]}" for name in ("request_id", "tenant", "agent") if line.get(name) is not None
    )
    where = f"[{line.get('environment', '-')}]"
    said = _escaped(line["event"])
    head = f"{line['time']} {line['level'].upper()} {line['logger']} {where} {said} {ids}".rstrip()
    below = line.get("exception")
    return (
        head if below is None else f"{head}\n  " + "\n  ".join(_escaped(part) for part in below.splitlines())
    )


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
