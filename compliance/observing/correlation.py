"""Ids that join what one request causes: its id (`X-Request-Id`) and its trace (W3C Trace Context).

Both are held in a context variable from the edge to log lines, messages of tasks, webhooks and audit entries.
Log lines also name the tenant and the agent that are bound to the context.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from random import getrandbits
from typing import Final, NamedTuple

from compliance.observing.redaction import is_formed_as_secret

REQUEST_ID: Final = "X-Request-Id"
TRACEPARENT: Final = "traceparent"
MAX_REQUEST_ID: Final = 128
MAX_TRACEPARENT: Final = 55
SAMPLED: Final = 1
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# Trace Context level 1, §3.2: a version after 00 may have more after a dash; ff is invalid.
_TRACEPARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16


class Correlation(NamedTuple):
    """The ids of a request, or of other work that begins by itself.

    `is_sampled`: the caller records the trace. `began` is the time of the request's arrival in seconds of
    `time.monotonic()`.
    """

    request_id: str
    trace_id: str
    span_id: str
    is_sampled: bool = False
    began: float = 0.0

    @property
    def traceparent(self) -> str:
        """This span as the header `traceparent` of what it causes."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.is_sampled else '00'}"


_current: ContextVar[Correlation | None] = ContextVar("correlation", default=None)
_bound: ContextVar[Mapping[str, object]] = ContextVar("bound", default={})  # noqa: B039  (replaced, never changed)


def begin(headers: Iterable[tuple[str, str]], *, began: float = 0.0) -> Correlation:
    """Return the ids of a request with these headers, whose names are in lower case.

    A request id that is malformed, too long, sent twice or formed as a secret is replaced by a new one; a
    `traceparent` that is malformed or sent twice begins a new trace.
    """
    sent_id = sent_parent = None
    for name, value in headers:
        if name == "x-request-id":
            sent_id = value if sent_id is None else ""
        elif name == "traceparent":
            sent_parent = value if sent_parent is None else ""
    return resume(sent_id or "", sent_parent or "", began=began)


def resume(request_id: str, traceparent: str, *, began: float = 0.0) -> Correlation:
    """Return ids that continue these, as `begin()`; what is empty or malformed is made."""
    fresh = f"{getrandbits(320):080x}"
    kept = request_id if request_id and is_request_id(request_id) else fresh[:32]
    trace_id, span_id = fresh[32:64], fresh[64:]
    if trace_id == _NO_TRACE or span_id == _NO_SPAN:
        return resume(request_id, traceparent, began=began)
    found = parse_traceparent(traceparent) if traceparent else None
    if found is None:
        return Correlation(kept, trace_id, span_id, False, began)
    return Correlation(kept, found[0], span_id, bool(found[2] & SAMPLED), began)


def is_request_id(text: str) -> bool:
    """Whether a client's request id is taken: 1 to 128 ASCII letters, digits, `.-_`, not formed as a secret.

    The settings' own secrets are not looked for: whether an id is sent back would tell who guessed one.
    """
    return _REQUEST_ID.fullmatch(text) is not None and not is_formed_as_secret(text)


def parse_traceparent(text: str) -> tuple[str, str, int] | None:
    """Return the trace's id, the parent's id and the flags; None for what Trace Context calls invalid."""
    found = _TRACEPARENT.fullmatch(text)
    if found is None:
        return None
    version, trace_id, parent_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or trace_id == _NO_TRACE or parent_id == _NO_SPAN:
        return None
    return trace_id, parent_id, int(flags, 16)


def current() -> Correlation | None:
    """Return the ids of the work under way; None where none have been set."""
    return _current.get()


@contextmanager
def use(correlation: Correlation | None) -> Iterator[None]:
    """Set the ids for a block, in which nothing is bound at first."""
    of_ids, of_bound = _current.set(correlation), _bound.set({})
    try:
        yield
    finally:
        _current.reset(of_ids)
        _bound.reset(of_bound)


def stored() -> tuple[str, str]:
    """Return the request's id and its `traceparent`, to be kept for what is done later; else "" twice."""
    found = _current.get()
    return ("", "") if found is None else (found.request_id, found.traceparent)


def headers_of(correlation: Correlation) -> Mapping[str, str]:
    """Return the headers by which a request of ours names the one that caused it."""
    return {REQUEST_ID: correlation.request_id, TRACEPARENT: correlation.traceparent}


def bind(**fields: object) -> None:
    """Add `tenant` or `agent` to the lines of the block of `use()`."""
    _bound.set({**_bound.get(), **fields})


def bound() -> Mapping[str, object]:
    """Return what was bound in the current context."""
    return _bound.get()
