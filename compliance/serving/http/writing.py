"""Writes the answers of one connection, no faster than its client takes them."""

import asyncio
import time

from compliance.api.answers import Answer
from compliance.serving.http.messages import Received, encoded
from compliance.serving.http.streams import StreamBroken, StreamedAnswer

WRITE_SECONDS = 30.0
"""How long a client may take to receive anything of an answer before the connection is aborted."""


class AnswerWriter:
    """Writes to a transport, whose protocol calls `pause` and `resume` for it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Future[None] | None = None

    def pause(self) -> None:
        """The client does not take what was written."""
        self._writable = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        """The client has taken most of it, or is gone."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    async def write(self, answer: Answer, request: Received, *, closes: bool) -> None:
        """Write the answer; return once the client has taken most of it, or the transport closes."""
        if isinstance(answer, StreamedAnswer):
            await self._stream(answer, request, closes=closes)
        elif not self._transport.is_closing():
            self._transport.write(_octets(answer, request, closes=closes))
        await self._until_taken()

    def refuse(self, answer: Answer, *, method: str, request_id: str) -> None:
        """Write the last answer of the connection, to a request whose end was not seen."""
        self._transport.write(
            encoded(answer, method=method, closes=True, now=time.time(), request_id=request_id)
        )

    async def _stream(self, answer: StreamedAnswer, request: Received, *, closes: bool) -> None:
        """Write the body piece by piece as the client takes it; abort where it breaks, so that this shows."""
        chunked = request.http_version != "1.0"
        write = self._transport.write
        try:
            write(_octets(answer, request, closes=closes, chunked=chunked))
            while request.method != "HEAD" and not self._transport.is_closing():
                piece = await answer.pieces.next()
                write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                await self._until_taken()
                if not piece:
                    break
        except StreamBroken:
            self._transport.abort()
        finally:
            await answer.pieces.stop()

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


def _octets(answer: Answer, request: Received, *, closes: bool, chunked: bool = False) -> bytes:
    request_id = "" if request.correlation is None else request.correlation.request_id
    now = time.time()
    return encoded(
        answer, method=request.method, closes=closes, now=now, request_id=request_id, chunked=chunked
    )
