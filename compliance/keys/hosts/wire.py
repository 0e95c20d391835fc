"""What key hosts and their callers say to each other: length, number, and a msgpack message of a known shape.

A connection carries one request at a time. Whatever is torn, too long or of another shape ends the
connection and nothing else; the number of a request comes back with its answer, so that no answer is taken
for another's.
"""

import socket
import struct
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from compliance.environments import Environment
from compliance.keys.base import SignatureAlgorithm, StoredKey

MAX_REQUEST: Final = 64 * 1024
MAX_ANSWER: Final = 1024 * 1024
PAGE: Final = 200
"""Keys in one message of a listing: their names fit `MAX_ANSWER` however long they are."""

_HEAD: Final = struct.Struct("!II")
_CHUNK: Final = 64 * 1024


class Broken(Exception):
    """The other side went away or sent what is no message; the connection is of no more use."""


class Request(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """What a host is asked; each is about one environment."""

    environment: Environment


class Sign(Request, frozen=True):
    uri: str
    digest: bytes
    algorithm: SignatureAlgorithm


class GenerateRsa(Request, frozen=True):
    """In the token named; `spread` as in `KeyBackend.generate_rsa`."""

    token: str
    bits: int
    label: str
    spread: bool


class GenerateEc(Request, frozen=True):
    """In the environment's main token."""

    label: str


class ReadPublic(Request, frozen=True):
    uri: str


class Destroy(Request, frozen=True):
    uri: str


class ListKeys(Request, frozen=True):
    """Of the token named, in pages."""

    token: str
    label_prefix: str


class Check(Request, frozen=True):
    """Whether the tokens that the host has opened serve, the main one in any case where it is here."""


class TakeStock(Request, frozen=True):
    """Which tokens are there; `look_again` starts the module anew for it, if that was not done just now."""

    look_again: bool = False


class MakeTokens(Request, frozen=True):
    labels: list[str]
    so_pin: str


class Answer(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """What a host answers; exactly one, but for a listing."""


class Signature(Answer, frozen=True):
    value: bytes


class Made(Answer, frozen=True):
    uri: str
    spki: bytes


class Public(Answer, frozen=True):
    spki: bytes


class Page(Answer, frozen=True):
    keys: list[StoredKey]
    is_last: bool


class Stock(Answer, frozen=True):
    pid: int
    labels: list[str]


class Done(Answer, frozen=True):
    count: int = 0


class Reason(StrEnum):
    """Why a host can't do it: the errors of `KeyBackend`, and that the token is not among its own."""

    UNAVAILABLE = "unavailable"
    NOT_CONFIGURED = "not_configured"
    NOT_FOUND = "not_found"
    REFUSED = "refused"
    NOT_HERE = "not_here"


class Failed(Answer, frozen=True):
    reason: Reason
    message: str = ""
    retry_after: int | None = None


AnyRequest = (
    Sign | GenerateRsa | GenerateEc | ReadPublic | Destroy | ListKeys | Check | TakeStock | MakeTokens
)
AnyAnswer = Signature | Made | Public | Page | Stock | Done | Failed

encode: Final = msgspec.msgpack.Encoder().encode
_decode_request: Final[Callable[[bytes], AnyRequest]] = msgspec.msgpack.Decoder(AnyRequest).decode
_decode_answer: Final[Callable[[bytes], AnyAnswer]] = msgspec.msgpack.Decoder(AnyAnswer).decode


def read_request(payload: bytes) -> AnyRequest:
    """Raises `Broken`."""
    try:
        return _decode_request(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Broken("not a request") from error


def read_answer(payload: bytes) -> AnyAnswer:
    """Raises `Broken`."""
    try:
        return _decode_answer(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Broken("not an answer") from error


class Channel:
    """Messages over one socket; `limit` is the longest that is read, in octets."""

    def __init__(self, connection: socket.socket, *, limit: int) -> None:
        self._socket = connection
        self._limit = limit
        self._rest = b""

    def send(self, number: int, message: AnyRequest | AnyAnswer, *, timeout: float) -> None:
        """Raises `Broken`, and TimeoutError when the other side does not read."""
        payload = encode(message)
        self._socket.settimeout(timeout)
        try:
            self._socket.sendall(_HEAD.pack(len(payload), number) + payload)
        except TimeoutError:
            raise
        except OSError as error:
            raise Broken(str(error)) from error

    def receive(self, *, timeout: float, is_idle: bool = False) -> tuple[int, bytes]:
        """The next message with its number; when `is_idle` the time counts from its first octet.

        Raises `Broken`, and TimeoutError.
        """
        if is_idle and not self._rest:
            self._read(None)
        deadline = time.monotonic() + timeout
        while len(self._rest) < _HEAD.size:
            self._read(deadline - time.monotonic())
        length, number = _HEAD.unpack_from(self._rest)
        if length > self._limit:
            raise Broken(f"a message of {length} octets")
        end = _HEAD.size + length
        while len(self._rest) < end:
            self._read(deadline - time.monotonic())
        payload, self._rest = self._rest[_HEAD.size : end], self._rest[end:]
        return number, payload

    def is_quiet(self) -> bool:
        """Whether the other side is there and has sent nothing that was not asked for."""
        if self._rest:
            return False
        try:
            self._socket.setblocking(False)
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        self._socket.close()

    def _read(self, timeout: float | None) -> None:
        if timeout is not None and timeout <= 0:
            raise TimeoutError
        self._socket.settimeout(timeout)
        try:
            piece = self._socket.recv(_CHUNK)
        except TimeoutError:
            raise
        except OSError as error:
            raise Broken(str(error)) from error
        if not piece:
            raise Broken("the other side went away")
        self._rest += piece
