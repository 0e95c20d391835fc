"""Writes the answers of one connection, no faster than its client takes them."""

import asyncio

from compliance.api.answers import Answer
from compliance.serving.http.messages import Received, StreamBroken, StreamedAnswer, encoded

WRITE_SECONDS = 30.0
"""How long a client may take to receive anything of an answer before the connection is aborted."""


class AnswerWriter:
    """Writes to a transport, whose protocol calls `pause` and `resume` for it."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Future[None] | None = None

    def pause(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        """The client has taken most of it, or is gone."""
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    async def write(self, answer: Answer, request: Received, *, closes: bool) -> None:
        """Write the answer; return once the client has taken most of it, or the transport closes.

        A streamed body that breaks aborts the connection, so that this shows.
        """
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
