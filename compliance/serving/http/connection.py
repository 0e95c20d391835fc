"""One HTTP/1.1 connection (RFC 9112): llhttp reads, and only a request whose end was seen is answered.

A body that is cut off, by its sender or by a malformed chunk, is refused with a 400 and never handed on: what
had arrived of it might look whole. Requests that were sent together (pipelined) are answered one by one.
"""

import asyncio
import math
import time
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NoReturn, cast

import httptools

from compliance.api.answers import Answer, Headers
from compliance.observing import correlation
from compliance.serving.http import refusals
from compliance.serving.http.messages import Received, StreamBroken, StreamedAnswer, encoded, split_target
from compliance.serving.http.refusals import Refusal

if TYPE_CHECKING:
    from compliance.serving.http.listener import Listener

LARGEST_TARGET = 8 * 1024
LARGEST_HEAD = 32 * 1024  # octets of all header names and values together
MOST_HEADERS = 128  # proxies take some 100 from a client, and add their own
MOST_DIGITS = 20  # of a length in octets, zeros before it included
SMALL_SLICE = 1024
"""Octets parsed at a time outside bodies: a client may send thousands of tiny requests in one piece, and all
but the next ones stay octets."""
LARGE_SLICE = 16 * 1024  # octets parsed at a time within a body
HOLD_SECONDS = 0.001  # how long one connection may parse before others have their turn
HEAD_SECONDS = 10.0  # how long a client may take from a request's first octet to the end of its headers
IDLE_SECONDS = 75.0
NEWCOMER_SECONDS = 1.0
"""How long a new connection may send nothing before it makes room for others like any idle one."""
LINGER_SECONDS = 2.0
"""How long what a refused client still sends is read and dropped: closing at once would reset the
connection, and the client might never read the refusal (RFC 9112 §9.6)."""


WRITE_SECONDS = 30.0
"""How long a client may take to receive anything of an answer before the connection is aborted."""


@dataclass(eq=False)
class AnswerWriter:
    _transport: asyncio.Transport
    _writable: asyncio.Future[None] | None = None

    def pause(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    async def write(self, answer: Answer, request: Received, *, closes: bool) -> None:
        """Write the answer until the client took most; a streamed body that breaks aborts the connection."""
        pieces = answer.pieces if isinstance(answer, StreamedAnswer) else None
        chunked = pieces is not None and request.http_version != "1.0"
        request_id = "" if request.correlation is None else request.correlation.request_id
        try:
            head = encoded(
                answer, method=request.method, request_id=request_id, closes=closes, chunked=chunked
            )
            if not self._transport.is_closing():
                self._transport.write(head)
            if pieces is None:
                await self._until_taken()
                return
            while request.method != "HEAD" and not self._transport.is_closing():
                piece = await pieces.next()
                self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                await self._until_taken()
                if not piece:
                    break
        except StreamBroken:
            self._transport.abort()
        finally:
            if pieces is not None:
                await pieces.stop()

    async def _until_taken(self) -> None:
        """Wait until the client has received most of what was written; abort if it receives nothing."""
        writable = self._writable
        if writable is None or self._transport.is_closing():
            return
        left = self._transport.get_write_buffer_size()
        while not writable.done():
            await asyncio.wait([writable], timeout=WRITE_SECONDS)
            now_left = self._transport.get_write_buffer_size()
            if not writable.done() and now_left >= left:
                self._transport.abort()
                return
            left = now_left


class Phase(Enum):
    IDLE = "the first octet of a request"
    HEAD = "the rest of the request's headers"
    BODY = "the rest of the request's body"
    ENDING = "the client to take the rest, and to close"


class Connection(asyncio.Protocol):
    """Reads requests from one client and writes the answers of `listener`."""

    def __init__(self, listener: "Listener") -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._writer: AnswerWriter
        self._address, self._server = "", ("", 0)
        self._phase = Phase.IDLE
        self._deadline = self._loop.time() + HEAD_SECONDS
        self._idle_since = self._loop.time() + NEWCOMER_SECONDS
        self._request_line = self._target = self._tail = b""
        self._headers: Headers = []
        self._head_size = 0
        self._unfinished = 0
        self._body = bytearray()
        self._length: int | None = None
        self._unparsed = b""
        self._owes_continue = False
        self._complete: deque[tuple[Received, bool]] = deque()
        self._refusal: Refusal | None = None
        self._is_answering = False
        self._has_eof = False

    @property
    def idle_since(self) -> float:
        """When its idle time began, in the loop's seconds; infinity while a request is under way."""
        return self._idle_since if self._phase is Phase.IDLE and not self._is_answering else math.inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._writer = AnswerWriter(self._transport)
        self.pause_writing, self.resume_writing = self._writer.pause, self._writer.resume  # type: ignore[method-assign]
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        # Those of a Unix socket are paths.
        if isinstance(peer, tuple) and isinstance(own, tuple):
            self._address, self._server = str(peer[0]), (str(own[0]), int(own[1]))
        if not self._listener.has_room_for(self):
            self._refuse(refusals.CROWDED)

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.closed(self)
        self._complete.clear()
        self._forget_request()
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._phase is not Phase.ENDING and self._refusal is None:
            self._unparsed += data
            self._parse()

    def eof_received(self) -> bool:
        self._has_eof = True
        if self._is_answering or self._unparsed:
            return True
        if self._phase is not Phase.ENDING:
            self._refuse_unfinished()
        return False

    def _parse(self) -> None:
        """Parse what was received: for a moment, and up to a request that waits for another's answer."""
        unparsed, offset, until = memoryview(self._unparsed), 0, time.monotonic() + HOLD_SECONDS
        while offset < len(unparsed) and not self._has_enough() and time.monotonic() < until:
            part = self._next_part(unparsed[offset:])
            offset += len(part)
            self._parse_slice(part)
        self._unparsed = bytes(unparsed[offset:]) if self._refusal is None else b""
        if self._unparsed:
            self._transport.pause_reading()
            if not self._has_enough():
                self._loop.call_soon(self._parse_on)

    def _next_part(self, unparsed: memoryview) -> "bytes | memoryview":
        """Return the next octets for the parser, of one request: it does not say where the next begins.

        A request ends with its length or, as heads and chunked bodies do, with an empty line.
        """
        if self._phase is Phase.BODY and self._length is not None:
            return unparsed[: min(LARGE_SLICE, self._length - len(self._body))]
        part = bytes(unparsed[: LARGE_SLICE if self._phase is Phase.BODY else SMALL_SLICE])
        before, line, _ = (self._tail + part).partition(b"\r\n\r\n")
        part = part[: len(before + line) - len(self._tail)]
        self._tail = (self._tail + part)[-3:]
        if b"\n" not in self._request_line:
            self._request_line = (self._request_line + part).lstrip(b"\r\n")
        return part

    def _parse_on(self) -> None:
        """Parse the rest after others had their turn."""
        self._parse()
        if not self._is_answering:
            self._go_on()

    def _has_enough(self) -> bool:
        """Whether a request waits for the answer to another, or none is answered any more."""
        return bool(self._complete and self._is_answering) or self._refusal is not None

    def _parse_slice(self, data: "bytes | memoryview") -> None:
        began_in, size, body = self._phase, len(data), len(self._body)
        while data:
            try:
                self._parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                # The parser skips the body of a request that would upgrade, so it is read again as one
                # that would not (RFC 9110 §7.8: a server may ignore Upgrade).
                kept = "".join(f"{name}: {value}\r\n" for name, value in self._headers if name != "upgrade")
                data = self._line() + kept.encode("latin-1") + b"\r\n" + bytes(data[upgrade.args[0] :])
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError:
                self._refuse(self._refusal or self._cut_short())
                return
        if self._phase is not began_in or len(self._body) != body:
            return
        # Octets that ended nothing: the parser keeps an unfinished header or trailer by itself.
        self._unfinished += size
        if self._unfinished > LARGEST_HEAD + LARGEST_TARGET:
            if self._phase is Phase.HEAD:
                self._refuse(refusals.LARGE_HEAD if self._headers else refusals.LONG_TARGET)
            elif self._phase is Phase.BODY:
                self._refuse(refusals.TOO_LARGE)

    def on_message_begin(self) -> None:
        self._target, self._headers, self._body = b"", [], bytearray()
        self._head_size = self._unfinished = 0
        self._wait_for(Phase.HEAD, HEAD_SECONDS)

    def on_url(self, part: bytes) -> None:
        self._target += part
        if len(self._target) > LARGEST_TARGET:
            self._stop_parsing(refusals.LONG_TARGET)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase is not Phase.HEAD:
            return  # a trailer says nothing about the request
        self._head_size += len(name) + len(value)
        if self._head_size > LARGEST_HEAD or len(self._headers) >= MOST_HEADERS:
            self._stop_parsing(refusals.LARGE_HEAD)
        self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        method, version = self._parser.get_method(), self._parser.get_http_version()
        # The parser also takes other protocols' names and more than one space.
        if version not in {"1.0", "1.1"} or not self._request_line.startswith(self._line()):
            self._stop_parsing(refusals.MALFORMED)
        if method == b"CONNECT" or b"#" in self._target:
            self._stop_parsing(refusals.BAD_TARGET)
        if self._parser.should_upgrade():
            return
        self._wait_for(Phase.BODY, self._listener.body_seconds)
        named = dict(self._headers)
        if version != "1.0" and [n for n, _ in self._headers].count("host") != 1:
            self._stop_parsing(refusals.NO_HOST)
        codings = [value.lower() for name, value in self._headers if name == "transfer-encoding"]
        length = named.get("content-length", "0")
        if (codings and (codings != ["chunked"] or version == "1.0")) or len(length) > MOST_DIGITS:
            self._stop_parsing(refusals.MALFORMED)
        self._length = None if codings else int(length)
        if self._length is not None and self._length > self._listener.largest_body:
            self._stop_parsing(refusals.TOO_LARGE)
        if "expect" in named and version != "1.0":
            if named["expect"].lower() != "100-continue":
                self._stop_parsing(refusals.UNEXPECTED)
            self._owes_continue = True
            if not self._is_answering:
                self._write_continue()

    def on_body(self, piece: bytes) -> None:
        self._body += piece
        self._unfinished = 0
        if len(self._body) > self._listener.largest_body:
            self._stop_parsing(refusals.TOO_LARGE)

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        found = split_target(self._target)
        if found is None:
            self._stop_parsing(refusals.BAD_TARGET)
        host, path, query = found
        if host:
            # The authority of an absolute target replaces Host (RFC 9112 §3.2.2).
            self._headers = [pair for pair in self._headers if pair[0] != "host"] + [("host", host)]
        request = Received(
            self._parser.get_method().decode("latin-1"),
            path,
            query,
            self._headers,
            bytes(self._body),
            self._address,
            self._server,
            self._parser.get_http_version(),
            correlation=correlation.begin(self._headers, began=time.monotonic()),
        )
        # What comes next may be refused before it has a target or headers: these are not its own.
        self._request_line, self._target, self._headers, self._body = b"", b"", [], bytearray()
        self._owes_continue = False
        self._complete.append((request, self._parser.should_keep_alive()))
        self._phase = Phase.IDLE
        if not self._is_answering:
            self._is_answering = True
            self._loop.create_task(self._answer_all())

    async def _answer_all(self) -> None:
        while self._complete:
            request, keeps_alive = self._complete.popleft()
            answer = await self._listener.answer(request)
            closes = not keeps_alive or self._listener.is_stopping
            # HTTP/1.0 knows no chunks: the end of the connection is that of the body.
            closes |= isinstance(answer, StreamedAnswer) and request.http_version == "1.0"
            await self._writer.write(answer, request, closes=closes)
            if self._transport.is_closing():
                return
            if closes:
                self._end()
                return
            if not self._complete and self._unparsed:
                # Others have their turn before the next of many.
                await asyncio.sleep(0)
                self._parse()
        self._is_answering = False
        self._go_on()

    def _go_on(self) -> None:
        if self._unparsed or self._phase is Phase.ENDING or self._transport.is_closing():
            return
        if self._refusal is not None:
            self._refuse(self._refusal)
        elif self._has_eof:
            self._refuse_unfinished()
        else:
            self._transport.resume_reading()
            if self._phase is Phase.IDLE:
                self._idle_since = self._loop.time()
                self._wait_for(Phase.IDLE, IDLE_SECONDS)
            elif self._owes_continue:
                self._write_continue()

    def _write_continue(self) -> None:
        self._owes_continue = False
        self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _end(self) -> None:
        """Close the connection once the client has taken the rest of what was written, or its time is up."""
        self._is_answering = False
        self._forget_request()
        self._wait_for(Phase.ENDING, WRITE_SECONDS)
        self._transport.close()

    def _refuse_unfinished(self) -> None:
        """Refuse what a client sent the beginning of and no more; without one, close."""
        if self._phase is Phase.IDLE:
            self._end()
        else:
            self._refuse(self._cut_short())

    def _refuse(self, refusal: Refusal) -> None:
        """Write the refusal once what came before it is answered, and read nothing more."""
        self._refusal = refusal
        self._phase = Phase.IDLE if self._is_answering else self._phase
        if self._is_answering:
            self._transport.pause_reading()
            return
        self._listener.refused(refusal.status)
        target = split_target(self._target)
        # Before its target the parser still has the method of another request.
        method = self._parser.get_method().decode("latin-1") if self._target else ""
        answer = refusal.at("" if target is None else target[1])
        request_id = correlation.begin(self._headers).request_id
        self._transport.write(encoded(answer, method=method, request_id=request_id))
        if self._has_eof:
            self._end()
            return
        self._forget_request()
        self._wait_for(Phase.ENDING, LINGER_SECONDS)
        try:
            self._transport.write_eof()
            self._transport.resume_reading()
        except OSError:
            # The peer has reset the connection meanwhile.
            self._transport.abort()

    def _forget_request(self) -> None:
        """Let go of what was read; the parser and this object would keep each other alive."""
        self._parser = httptools.HttpRequestParser(None)
        self._headers, self._body, self._unparsed = [], bytearray(), b""

    def _stop_parsing(self, refusal: Refusal) -> NoReturn:
        """Have the parser give up; `data_received` refuses the request then."""
        self._refusal = refusal
        raise ValueError("refused")

    def _cut_short(self) -> Refusal:
        return refusals.CUT_SHORT if self._phase is Phase.BODY else refusals.MALFORMED

    def _line(self) -> bytes:
        version = self._parser.get_http_version().encode()
        return b"%s %s HTTP/%s\r\n" % (self._parser.get_method(), self._target, version)

    def check_deadline(self, now: float) -> None:
        """Act on a deadline that has passed; `now` is the loop's time."""
        if self._is_answering or now < self._deadline:
            return
        if self._phase in {Phase.HEAD, Phase.BODY}:
            self._refuse(refusals.TOO_SLOW)
        elif self._phase is Phase.ENDING:
            self._transport.abort()  # a close would wait for a client that takes nothing
        else:
            self._transport.close()

    def end_if_idle(self) -> None:
        if self.idle_since < math.inf:
            self._transport.close()

    def _wait_for(self, phase: Phase, seconds: float) -> None:
        self._phase = phase
        self._deadline = self._loop.time() + seconds
