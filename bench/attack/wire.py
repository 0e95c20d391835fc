"""HTTP/1.1 over a plain socket: requests as they are given, well-formed or not, and answers as they come."""

import json
import select
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.attack.core import Siege

TIMEOUT_SECONDS = 10.0
"""What takes longer is a hang."""
LARGEST_LINE = 65_536
HeaderLines = Sequence[tuple[str, str | bytes]]


class NoAnswer(Exception):
    """The server ended the connection without an answer."""


class Hang(Exception):
    """No answer in time."""


class Garbled(Exception):
    """What came is no HTTP answer."""


@dataclass(frozen=True)
class Reply:
    """An answer off the wire; `headers` are lower-case, repeated ones kept."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    seconds: float = 0.0

    def header(self, name: str) -> str | None:
        """The first of that name."""
        return next((value for key, value in self.headers if key == name), None)

    @property
    def json(self) -> Any:
        """The body read as JSON; None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    @property
    def data(self) -> Any:
        """The envelope's `data`; None without one."""
        found = self.json
        return found.get("data") if isinstance(found, dict) else None

    @property
    def ends_connection(self) -> bool:
        return (self.header("connection") or "").lower() == "close"

    def __str__(self) -> str:
        return f"{self.status} {self.body[:160]!r}"


@dataclass(frozen=True)
class Call:
    """A request whose parts may be anything that a socket takes."""

    method: str
    target: str | bytes
    headers: HeaderLines = ()
    body: bytes | None = None

    def octets(self, host: str) -> bytes:
        """The request, framed by its length."""
        names = {name.lower() for name, _ in self.headers}
        lines = [b"%s %s HTTP/1.1" % (self.method.encode("latin-1", "replace"), _octets(self.target))]
        if "host" not in names:
            lines.append(b"Host: " + host.encode())
        lines += [_octets(name) + b": " + _octets(value) for name, value in self.headers]
        if self.body is not None and not names & {"content-length", "transfer-encoding"}:
            lines.append(b"Content-Length: %d" % len(self.body))
        return b"\r\n".join([*lines, b"", b""]) + (self.body or b"")

    def __str__(self) -> str:
        body = "" if self.body is None else f" {len(self.body)} octets {self.body[:200]!r}"
        # A key is a secret even of a database that is dropped afterwards.
        shown = [(name, value) for name, value in self.headers if name.lower() != "authorization"]
        return f"{self.method} {self.target!r}{f' {shown!r}' if shown else ''}{body}"[:400]


class Line:
    """A keep-alive connection, opened when it is needed."""

    def __init__(self, siege: Siege, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._siege = siege
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._reader: Any = None

    def __enter__(self) -> "Line":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def host(self) -> str:
        """As it stands in a `Host` header."""
        return f"{self._siege.address.host}:{self._siege.address.port}"

    def close(self) -> None:
        """End it."""
        if self._socket is not None:
            self._reader.close()
            self._socket.close()
        self._socket = self._reader = None

    def reset(self) -> None:
        """End it with an RST."""
        if self._socket is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def half_close(self) -> None:
        """Say that no more will be sent."""
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_WR)

    def send(self, octets: bytes) -> None:
        """Send without waiting for an answer; what the server no longer takes is not sent."""
        if self._socket is None:
            address = (self._siege.address.host, self._siege.address.port)
            self._socket = socket.create_connection(address, timeout=self._timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._reader = self._socket.makefile("rb")
        try:
            self._socket.sendall(octets)
        except (BrokenPipeError, ConnectionResetError):
            return
        except TimeoutError as error:
            raise Hang from error

    def receive(self, *, method: str = "GET", timeout: float | None = None) -> Reply:
        """The next answer; raises `NoAnswer`, `Hang` or `Garbled`."""
        if self._socket is None:
            raise NoAnswer
        self._socket.settimeout(timeout or self._timeout)
        began = time.monotonic()
        try:
            return self._read(method, began)
        except TimeoutError as error:
            self.close()
            raise Hang from error
        except OSError as error:
            self.close()
            raise NoAnswer from error

    def has_more(self, seconds: float) -> bool:
        """Whether something more comes in so many seconds: octets, or the connection's end."""
        if self._socket is None:
            return False
        self._socket.settimeout(0)
        try:
            is_here = bool(self._reader.peek(1))
        except OSError:
            is_here = True
        finally:
            self._socket.settimeout(self._timeout)
        return is_here or bool(select.select([self._socket], [], [], seconds)[0])

    def ask(self, call: Call) -> Reply:
        """An answer to `call`, on a new connection where the server ended the one before."""
        self._siege.sent()
        is_kept = self._socket is not None
        try:
            self.send(call.octets(self.host))
            reply = self.receive(method=call.method)
        except NoAnswer:
            self.close()
            if not is_kept:
                raise
            # A server may end an idle connection at any time.
            self.send(call.octets(self.host))
            reply = self.receive(method=call.method)
        if reply.ends_connection:
            self.close()
        return reply

    def _read(self, method: str, began: float) -> Reply:
        while True:
            status, headers = self._head()
            if status >= 200 or status == 101:
                break
        named = dict(headers)
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif "chunked" in named.get("transfer-encoding", ""):
            body = self._chunks()
        elif "content-length" in named:
            length = int(named["content-length"])
            body = self._reader.read(length)
            if len(body) < length:
                raise NoAnswer
        else:
            body = self._reader.read()
        return Reply(status, tuple(headers), body, time.monotonic() - began)

    def _head(self) -> tuple[int, list[tuple[str, str]]]:
        line = self._reader.readline(LARGEST_LINE)
        if not line:
            raise NoAnswer
        words = line.split(b" ", 2)
        if not words[0].startswith(b"HTTP/1.") or len(words) < 2 or not words[1].strip().isdigit():
            raise Garbled(repr(line[:80]))
        headers = []
        while (line := self._reader.readline(LARGEST_LINE).rstrip(b"\r\n")) != b"":
            name, _, value = line.decode("latin-1").partition(":")
            headers.append((name.strip().lower(), value.strip()))
        return int(words[1]), headers

    def _chunks(self) -> bytes:
        found = b""
        while size := int(self._reader.readline(LARGEST_LINE).split(b";")[0] or b"0", 16):
            found += self._reader.read(size)
            self._reader.readline()
        while self._reader.readline(LARGEST_LINE).strip():
            pass
        return found


def call(
    method: str,
    target: str | bytes,
    *,
    key: str | None = None,
    body: Any = None,
    headers: Mapping[str, str] | HeaderLines = (),
) -> Call:
    """An ordinary request; `body` is sent as JSON, or as it is where it is bytes."""
    lines = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    names = {name.lower() for name, _ in lines}
    if key is not None and "authorization" not in names:
        lines.append(("Authorization", f"Bearer {key}"))
    if body is None:
        return Call(method, target, lines)
    if "content-type" not in names:
        lines.append(("Content-Type", "application/json"))
    return Call(method, target, lines, body if isinstance(body, bytes) else json.dumps(body).encode())


def _octets(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
