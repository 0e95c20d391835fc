"""The WSGI application in threads, which answers what the fast path does not.

Beside a fast path these threads live in a process of their own: Python runs one thread at a time, so parsing
a megabyte of JSON in the process of the event loop would delay every verification.
"""

import asyncio
import ctypes
import logging
import os
import signal
import socket
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import BinaryIO, NoReturn, Protocol

import msgspec

from compliance.api.answers import Answer
from compliance.observing import correlation
from compliance.serving.http import refusals
from compliance.serving.http.messages import Received
from compliance.serving.http.streams import StreamBroken, StreamedAnswer
from compliance.serving.wsgi import OpenAnswer, WsgiApplication, begin, environ_of

log = logging.getLogger(__name__)

# From Linux's prctl.h
PR_SET_PDEATHSIG = 1
NICENESS = 5  # how much less of a busy processor the views are given than the event loop beside them
_LENGTH = struct.Struct("!Q")
_encode = msgspec.msgpack.Encoder().encode
_decode_request = msgspec.msgpack.Decoder(Received).decode
_decode_answer = msgspec.msgpack.Decoder(tuple[Answer, bool]).decode  # whether pieces follow
_GO_ON, _STOP = b"\1", b"\0"
_BROKEN = 2**64 - 1
"""The length that stands for a piece that could not be made."""


class Startup(Protocol):
    """What to do before the first request."""

    def begin_process(self) -> None:
        """Called once, in the process of the views."""

    def begin_thread(self) -> None:
        """Called in each of its threads."""


class DjangoProcess(Protocol):
    """The application behind the fast path of one worker."""

    async def answer(self, request: Received) -> Answer:
        """The application's answer. Raises: DjangoLost when its process has ended."""

    def close(self) -> None:
        """End, once the requests under way are answered."""


class DjangoLost(Exception):
    """The process of the application has ended."""


def answer_of(application: WsgiApplication, request: Received) -> Answer:
    """The application's whole answer; 500 where it met a defect."""
    found = begun(application, request)
    return found.collected() if isinstance(found, OpenAnswer) else found


def begun(application: WsgiApplication, request: Received) -> Answer | OpenAnswer:
    """The application's answer, perhaps with its body still to be made; 500 where it met a defect."""
    with correlation.use(request.correlation):
        try:
            return begin(application, environ_of(request))
        except Exception:
            log.exception("unexpected error on %s", request.path)
            return refusals.FAILED.at(request.path)


class ThreadedDjango:
    """The application in threads of this process."""

    def __init__(self, application: WsgiApplication, *, threads: int) -> None:
        self._application = application
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="web")

    async def answer(self, request: Received) -> Answer:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, answer_of, self._application, request)

    def close(self) -> None:
        self._threads.shutdown(wait=True)


class ForkedDjango:
    """The application in threads of a process of its own, each behind a socket that only these two share.

    It is forked at once, so this process must have no other threads yet, and keeps none of the `inherited`
    files. It ends with the one that forked it, however that one ends.
    """

    def __init__(
        self, application: WsgiApplication, *, threads: int, startup: Startup, inherited: Sequence[int] = ()
    ) -> None:
        pairs = [socket.socketpair() for _ in range(threads)]
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _die_with(parent)
            for number in inherited:
                os.close(number)
            for ours, _ in pairs:
                ours.close()
            _serve_all(application, [theirs for _, theirs in pairs], startup)
        self._sockets = [ours for ours, _ in pairs]
        for ours, theirs in pairs:
            theirs.close()
            ours.setblocking(False)
        self._slots = Slots(self._sockets)

    async def answer(self, request: Received) -> Answer:
        return await self._slots.answer(request)

    def close(self) -> None:
        for one in self._sockets:
            # A read under way keeps uvloop's socket open after close(), and the views waiting for its end.
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        os.waitpid(self._pid, 0)


class Slots:
    """Sockets to the threads of the other process, each for one request at a time."""

    def __init__(self, sockets: Sequence[socket.socket]) -> None:
        self._free: asyncio.LifoQueue[socket.socket] = asyncio.LifoQueue()
        for one in sockets:
            self._free.put_nowait(one)

    async def answer(self, request: Received) -> Answer:
        """The answer of a free thread. Raises: DjangoLost."""
        slot = await self._free.get()
        # Whatever becomes of this caller, the answer is read: the next one must not get it.
        return await asyncio.shield(asyncio.ensure_future(_ask(slot, request, self._free)))


async def _ask(slot: socket.socket, request: Received, free: "asyncio.LifoQueue[socket.socket]") -> Answer:
    loop = asyncio.get_running_loop()
    octets = _encode(request)
    try:
        await loop.sock_sendall(slot, _LENGTH.pack(len(octets)) + octets)
        (length,) = _LENGTH.unpack(await _exactly(loop, slot, _LENGTH.size))
        answer, is_open = _decode_answer(await _exactly(loop, slot, length))
    except OSError as error:
        free.put_nowait(slot)
        raise DjangoLost from error
    if is_open:
        return StreamedAnswer(answer.status, answer.headers, b"", _Pieces(slot, free))
    free.put_nowait(slot)
    return answer


class _Pieces:
    """The body that a thread of the other process makes; the slot is free again at its end."""

    def __init__(self, slot: socket.socket, free: "asyncio.LifoQueue[socket.socket]") -> None:
        self._slot, self._free = slot, free
        self._is_open = True

    async def next(self) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_sendall(self._slot, _GO_ON)
            (length,) = _LENGTH.unpack(await _exactly(loop, self._slot, _LENGTH.size))
            if length in (0, _BROKEN):
                self._end()
            if length == _BROKEN:
                raise StreamBroken
            return bytes(await _exactly(loop, self._slot, length))
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
        self._free.put_nowait(self._slot)


async def _exactly(loop: asyncio.AbstractEventLoop, slot: socket.socket, length: int) -> bytearray:
    found = bytearray(length)
    rest = memoryview(found)
    while rest:
        count = await loop.sock_recv_into(slot, rest)
        if not count:
            raise ConnectionResetError("the views' process has ended")
        rest = rest[count:]
    return found


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, even while a thread of it is stuck."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _serve_all(application: WsgiApplication, sockets: Sequence[socket.socket], startup: Startup) -> NoReturn:
    """The life of the forked process: until its parent has closed every socket, or is gone."""
    # The parent gets these signals, and ends after the requests under way.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    code = 1
    try:
        os.nice(NICENESS)
        startup.begin_process()
        threads = [
            Thread(target=serve_socket, args=[application, one, startup], daemon=True) for one in sockets
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        code = 0
    except Exception:
        log.exception("the views cannot be served")
    finally:
        os._exit(code)


def serve_socket(application: WsgiApplication, slot: socket.socket, startup: Startup) -> None:
    """Answer the requests that come over a socket, one by one, until it is closed."""
    startup.begin_thread()
    # The worker may end before it has an answer.
    with suppress(ConnectionError), slot, slot.makefile("rb") as reader:
        while head := reader.read(_LENGTH.size):
            request = _decode_request(reader.read(*_LENGTH.unpack(head)))
            found = begun(application, request)
            is_open = isinstance(found, OpenAnswer)
            octets = _encode((found.head if isinstance(found, OpenAnswer) else found, is_open))
            slot.sendall(_LENGTH.pack(len(octets)) + octets)
            if isinstance(found, OpenAnswer):
                _send_pieces(found, slot, reader)


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
