"""Django in threads of a process of its own, which answer what the fast path does not.

Python runs one thread at a time, so parsing a megabyte of JSON in the process of the event loop would delay
every verification.
"""

import asyncio
import ctypes
import logging
import os
import signal
import socket
import struct
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import BinaryIO, NoReturn, Self

import msgspec

from compliance.api.answers import Answer
from compliance.core.shares import SharedSlots
from compliance.observing import correlation
from compliance.serving.http import refusals
from compliance.serving.http.messages import Received, StreamBroken, StreamedAnswer
from compliance.serving.wsgi import OpenAnswer, WsgiApplication, begin, environ_of

log = logging.getLogger(__name__)

# From Linux's prctl.h
PR_SET_PDEATHSIG = 1
MOST_WAITING = 32  # requests of one tenant that wait for a thread; more are refused at once
WAIT_SECONDS = 30.0
NICENESS = 5  # how much less of a busy processor the views are given than the event loop beside them
_LENGTH = struct.Struct("!Q")
_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(Received).decode
_decode_answer = msgspec.msgpack.Decoder(tuple[Answer, bool]).decode  # whether pieces follow
_GO_ON, _STOP = b"\1", b"\0"
_BROKEN = 2**64 - 1
"""The length that stands for a piece that could not be made."""


class DjangoLost(Exception):
    """The process of the application has ended."""


class DjangoProcess:
    """The application's threads, each behind a socket for one request at a time; tenants share them."""

    def __init__(self, sockets: Sequence[socket.socket], *, pid: int) -> None:
        self._pid = pid
        self._sockets = sockets
        for one in sockets:
            one.setblocking(False)
        self._free = [*sockets]  # the last one used is the next
        self._slots = SharedSlots(len(sockets), longest_queue=MOST_WAITING)

    @classmethod
    def fork(cls, application: WsgiApplication, *, threads: int, inherited: Sequence[int]) -> Self:
        """Fork the process, before other threads, without the `inherited` files; it ends with this one."""
        pairs = [socket.socketpair() for _ in range(threads)]
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            # The kernel kills this process when its parent ends, even while a thread of it is stuck.
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            for number in inherited:
                os.close(number)
            for ours, _ in pairs:
                ours.close()
            _serve_all(application, [theirs for _, theirs in pairs])
        for _, theirs in pairs:
            theirs.close()
        return cls([ours for ours, _ in pairs], pid=pid)

    async def answer(self, request: Received, holder: Hashable) -> Answer:
        """The application's answer to the request of a holder, as a rule a tenant.

        Raises: DjangoLost when its process has ended; AllTaken when no thread came free.
        """
        slot = await self._slots.wait(holder, seconds=WAIT_SECONDS)
        one = self._free.pop()

        def end() -> None:
            self._free.append(one)
            slot.release()

        # Whatever becomes of this caller, the answer is read: the next one must not get it.
        return await asyncio.shield(asyncio.ensure_future(_ask(one, request, end)))

    def close(self) -> None:
        for one in self._sockets:
            # A read under way keeps uvloop's socket open after close(), and the views waiting for its end.
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        os.waitpid(self._pid, 0)


async def _ask(slot: socket.socket, request: Received, end: Callable[[], None]) -> Answer:
    octets = _encode(request)
    try:
        await asyncio.get_running_loop().sock_sendall(slot, _LENGTH.pack(len(octets)) + octets)
        (length,) = _LENGTH.unpack(await _exactly(slot, _LENGTH.size))
        answer, is_open = _decode_answer(await _exactly(slot, length))
    except OSError as error:
        end()
        raise DjangoLost from error
    if is_open:
        return StreamedAnswer(answer.status, answer.headers, b"", _Pieces(slot, end))
    end()
    return answer


@dataclass(eq=False)
class _Pieces:
    """The body that a thread of the other process makes; the slot is free again at its end."""

    _slot: socket.socket
    _free: Callable[[], None]
    _is_open: bool = True

    async def next(self) -> bytes:
        try:
            await asyncio.get_running_loop().sock_sendall(self._slot, _GO_ON)
            (length,) = _LENGTH.unpack(await _exactly(self._slot, _LENGTH.size))
            if length in (0, _BROKEN):
                self._end()
            if length == _BROKEN:
                raise StreamBroken
            return bytes(await _exactly(self._slot, length))
        except OSError as error:
            self._end()
            raise StreamBroken from error

    async def stop(self) -> None:
        if self._is_open:
            with suppress(OSError):
                await asyncio.get_running_loop().sock_sendall(self._slot, _STOP)
            self._end()

    def _end(self) -> None:
        self._is_open = False
        self._free()


async def _exactly(slot: socket.socket, length: int) -> bytearray:
    found = bytearray(length)
    rest = memoryview(found)
    while rest:
        count = await asyncio.get_running_loop().sock_recv_into(slot, rest)
        if not count:
            raise ConnectionResetError("the views' process has ended")
        rest = rest[count:]
    return found


def _serve_all(application: WsgiApplication, sockets: Sequence[socket.socket]) -> NoReturn:
    """The life of the forked process: until its parent has closed every socket, or is gone."""
    # The parent gets these signals, and ends after the requests under way.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    code = 1
    try:
        os.nice(NICENESS)
        threads = [Thread(target=serve_socket, args=[application, one], daemon=True) for one in sockets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        code = 0
    except Exception:
        log.exception("the views cannot be served")
    finally:
        os._exit(code)


def serve_socket(application: WsgiApplication, slot: socket.socket) -> None:
    """Answer the requests that come over a socket, one by one, until it is closed."""
    # The worker may end before it has an answer.
    with suppress(ConnectionError), slot, slot.makefile("rb") as reader:
        while head := reader.read(_LENGTH.size):
            found = answer_of(application, _decode_request(reader.read(*_LENGTH.unpack(head))))
            is_open = isinstance(found, OpenAnswer)
            octets = _encode((found.head if isinstance(found, OpenAnswer) else found, is_open))
            slot.sendall(_LENGTH.pack(len(octets)) + octets)
            if isinstance(found, OpenAnswer):
                _send_pieces(found, slot, reader)


def answer_of(application: WsgiApplication, request: Received) -> Answer | OpenAnswer:
    with correlation.use(request.correlation):
        try:
            return begin(application, environ_of(request))
        except Exception:
            log.exception("unexpected error on %s", request.path)
            return refusals.FAILED.at(request.path)


def _send_pieces(found: OpenAnswer, slot: socket.socket, reader: BinaryIO) -> None:
    """Make and send each piece when it is asked for, an empty one after the last."""
    try:
        while reader.read(1) == _GO_ON:
            piece = next(found.pieces, b"")
            slot.sendall(_LENGTH.pack(len(piece)) + piece)
            if not piece:
                return
    except ConnectionError:
        raise
    except Exception:
        log.exception("unexpected error in a streamed answer")
        slot.sendall(_LENGTH.pack(_BROKEN))
    finally:
        found.close()
