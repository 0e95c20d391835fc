"""A request as the connection read it, and an answer as the connection writes it (RFC 9112)."""

from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from compliance.api.answers import Answer, Headers
from compliance.observing.correlation import Correlation
from compliance.serving.http.streams import StreamedAnswer

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


def head_without_upgrade(method: bytes, target: bytes, http_version: str, headers: Headers) -> bytes:
    """A request line and headers in octets again, less the wish to upgrade."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers if name != "upgrade")
    return b"%s %s HTTP/%s\r\n%s\r\n" % (method, target, http_version.encode(), lines.encode("latin-1"))


def split_absolute(target: bytes) -> tuple[str, bytes] | None:
    """The authority of an absolute http target, and its path with the query; None for any other target."""
    try:
        parts = urlsplit(target.decode("ascii"))
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        return None
    path = parts.path or "/"
    return parts.netloc, (f"{path}?{parts.query}" if parts.query else path).encode()


def path_of(target: bytes) -> str:
    """The percent-decoded path of a target in either form; of one in neither, the target."""
    if not target.startswith(b"/"):
        absolute = split_absolute(target)
        target = target if absolute is None else absolute[1]
    path = target.partition(b"#")[0].partition(b"?")[0]
    return (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1")


def query_of(target: bytes) -> str:
    return target.partition(b"#")[0].partition(b"?")[2].decode("latin-1")


def encoded(
    answer: Answer, *, method: str, closes: bool, now: float, request_id: str, chunked: bool = False
) -> bytes:
    """The octets of an answer to a request of `method`; `closes`: the connection ends with it.

    `now` is a Unix time in seconds. A streamed answer's body follows, in chunks if `chunked`.
    """
    status = answer.status
    lines = [
        f"HTTP/1.1 {status} {_REASONS.get(status, '')}\r\n"
        f"date: {_date(int(now))}\r\nx-request-id: {request_id}\r\n"
    ]
    announced = None
    for name, value in answer.headers:
        lower = name.lower()
        if lower not in _OWN_HEADERS:
            lines.append(f"{lower}: {value}\r\n")
        elif lower == "content-length":
            announced = value
    is_head = method == "HEAD"
    if chunked:
        lines.append("transfer-encoding: chunked\r\n")
    elif status not in BODILESS and not isinstance(answer, StreamedAnswer):
        # A HEAD request's answer may announce the length of the body that it leaves out.
        length = announced if is_head and announced is not None else len(answer.body)
        lines.append(f"content-length: {length}\r\n")
    if closes:
        lines.append("connection: close\r\n")
    lines.append("\r\n")
    head = "".join(lines).encode("latin-1")
    return head if is_head or status in BODILESS else head + answer.body


def ends_connection(answer: Answer) -> bool:
    """Whether the answer asks for the connection to be closed after it."""
    return any(name.lower() == "connection" and value.lower() == "close" for name, value in answer.headers)


@lru_cache(maxsize=2)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
