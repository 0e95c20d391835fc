"""A request as the connection read it, and an answer as octets (RFC 9112)."""

import time
from dataclasses import dataclass
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple, Protocol
from urllib.parse import unquote_to_bytes, urlsplit

from compliance.api.answers import Answer, Headers
from compliance.observing.correlation import Correlation

BODILESS = frozenset({204, 304})
_REASONS = {status.value: status.phrase for status in HTTPStatus}
# The connection alone decides about these.
_OWN_HEADERS = frozenset(
    {"connection", "content-length", "date", "keep-alive", "transfer-encoding", "x-request-id"}
)


class Received(NamedTuple):
    """A request whose end was seen.

    Text is octets as Latin-1. `path` is percent-decoded; header names are lower-case, in the order sent;
    `address` is the peer's, `server` our own address and port. `correlation`: the ids made at its arrival.
    """

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    address: str
    server: tuple[str, int]
    http_version: str = "1.1"
    scheme: str = "http"
    correlation: Correlation | None = None


class StreamBroken(Exception):
    """The rest of a body cannot be made."""


class PieceSource(Protocol):
    """A body too large to be put together: each piece is made once the client has taken those before."""

    async def next(self) -> bytes:
        """Return the next piece, empty after the last. Raises: StreamBroken."""

    async def stop(self) -> None:
        """Let go of the body, of which no more is read; safe to repeat."""


@dataclass(frozen=True)
class StreamedAnswer(Answer):
    pieces: PieceSource


def split_target(target: bytes) -> tuple[str, str, str] | None:
    """Return host ("" in the origin form), decoded path and query; None for no path and no http URL."""
    host = ""
    if not target.startswith(b"/"):
        try:
            parts = urlsplit(target.decode("ascii"))
        except ValueError:
            return None
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            return None
        host, target = parts.netloc, f"{parts.path or '/'}?{parts.query}".encode()
    path, _, query = target.partition(b"?")
    return host, (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1"), query.decode("latin-1")


def encoded(
    answer: Answer, *, method: str, request_id: str, closes: bool = True, chunked: bool = False
) -> bytes:
    """The octets of an answer to a request of `method`; `closes`: the connection ends with it.

    A streamed answer's body follows, in chunks if `chunked`.
    """
    status, is_head = answer.status, method == "HEAD"
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, '')}\r\n"
        f"date: {_date(int(time.time()))}\r\nx-request-id: {request_id}\r\n"
    ]
    length = str(len(answer.body))
    for name, value in answer.headers:
        lower = name.lower()
        if lower not in _OWN_HEADERS:
            lines.append(f"{lower}: {value}\r\n")
        elif lower == "content-length" and is_head:
            length = value  # of the body that the answer leaves out
    if chunked:
        lines.append("transfer-encoding: chunked\r\n")
    elif status not in BODILESS and not isinstance(answer, StreamedAnswer):
        lines.append(f"content-length: {length}\r\n")
    lines.append("connection: close\r\n\r\n" if closes else "\r\n")
    head = "".join(lines).encode("latin-1")
    return head if is_head or status in BODILESS else head + answer.body


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
