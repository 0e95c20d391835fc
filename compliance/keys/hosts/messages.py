"""Messages between key hosts and their clients: length, number, and msgpack of a fixed shape.

A connection carries one request at a time; the response repeats its number. A message that is torn, too long
or of another shape ends the connection and nothing else.
"""

import select
import socket
import struct
from typing import ClassVar, Final, TypeVar

import msgspec

from compliance.core.environments import Environment
from compliance.core.errors import Unavailable
from compliance.keys import base

Message = TypeVar("Message")

MAX_REQUEST: Final = 64 * 1024
MAX_RESPONSE: Final = 64 * 1024 * 1024  # for a listing of 100,000 keys

_HEAD: Final = struct.Struct("!II")


class ConnectionLost(Exception):
    """The other side went away or broke the protocol; the connection cannot be used again."""


class KeyHostRequest(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """An operation on the keys of one environment; a comment names the type of the result.

    `timeout` in seconds exceeds what the host gives the module, so that the host's error comes first.
    """

    timeout: ClassVar[float] = 12.0
    is_slow: ClassVar[bool] = False

    environment: Environment


class _SlowRequest(KeyHostRequest, frozen=True):
    """An operation that may take seconds."""

    timeout: ClassVar[float] = 35.0
    is_slow: ClassVar[bool] = True


class SignDigest(KeyHostRequest, frozen=True):  # bytes
    uri: str
    digest: bytes
    algorithm: base.SignatureAlgorithm


class SignEd25519(KeyHostRequest, frozen=True):  # bytes
    uri: str
    message: bytes


class GenerateKey(_SlowRequest, frozen=True):  # URI and SubjectPublicKeyInfo
    """As `ShardedBackend.generate_in()`."""

    token: str
    bits: int
    label: str
    keep_public: bool


class MakeWrappingKey(_SlowRequest, frozen=True):  # WrappingKeyRef
    label: str


class AdoptWrappingKey(KeyHostRequest, frozen=True):  # WrappingKeyRef
    uri: str


class GenerateWrapped(_SlowRequest, frozen=True):  # WrappedKey
    wrapping: base.WrappingKeyRef
    label: str


class SignUnwrapped(KeyHostRequest, frozen=True):  # bytes; none if the host has not unwrapped the key
    key: base.KeyRef
    digest: bytes
    algorithm: base.SignatureAlgorithm


class UnwrapAndSign(KeyHostRequest, frozen=True):  # bytes
    wrapped: base.WrappedKey
    digest: bytes
    algorithm: base.SignatureAlgorithm


class WrapAnew(KeyHostRequest, frozen=True):  # WrappedKey
    wrapped: base.WrappedKey
    to: base.WrappingKeyRef


class ReadPublicKey(KeyHostRequest, frozen=True):  # SubjectPublicKeyInfo
    uri: str


class DestroyKey(KeyHostRequest, frozen=True):  # None
    uri: str


class ListToken(_SlowRequest, frozen=True):  # list[StoredKey]
    token: str
    label_prefix: str


class CheckTokens(KeyHostRequest, frozen=True):  # None
    """Check the tokens that the host has opened, and the main token if it is this host's."""

    timeout: ClassVar[float] = 5.0

    has_main: bool


class FindTokens(_SlowRequest, frozen=True):  # list[str]
    """As `Pkcs11Backend.find_tokens()`."""

    wanted: str = ""


class MakeTokens(_SlowRequest, frozen=True):  # int
    labels: list[str]
    so_pin: str


Signing = SignDigest | SignEd25519
Wrapping = MakeWrappingKey | AdoptWrappingKey | GenerateWrapped | SignUnwrapped | UnwrapAndSign | WrapAnew
AnyRequest = (
    Signing
    | Wrapping
    | GenerateKey
    | ReadPublicKey
    | DestroyKey
    | ListToken
    | CheckTokens
    | FindTokens
    | MakeTokens
)


ERRORS: Final[dict[str, type[Unavailable]]] = {
    "not_configured": base.KeyServiceNotConfigured,
    "mismatch": base.KeyMismatch,  # before the error that it is a kind of
    "not_found": base.KeyNotFound,
    "unavailable": base.KeyServiceUnavailable,
}
INVALID: Final = "invalid"  # a ValueError


class KeyHostResponse(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The result of a request in msgpack, or the name of its error."""

    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    failure: str = ""
    message: str = ""
    retry_after: int | None = None


encode: Final = msgspec.msgpack.Encoder().encode
_REQUESTS: Final[msgspec.msgpack.Decoder[AnyRequest]] = msgspec.msgpack.Decoder(AnyRequest)
_RESPONSES: Final = msgspec.msgpack.Decoder(KeyHostResponse)


def read_request(payload: bytes) -> AnyRequest:
    return _decoded(_REQUESTS, payload)


def read_response(payload: bytes, *, is_expected: bool) -> KeyHostResponse:
    """Decode a response; raises `ConnectionLost`, always if it is not the one that is expected."""
    if not is_expected:
        raise ConnectionLost("the response to another request")
    return _decoded(_RESPONSES, payload)


def _decoded(decoder: msgspec.msgpack.Decoder[Message], payload: bytes) -> Message:
    try:
        return decoder.decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ConnectionLost("not a message") from error


class MessageConnection:
    """Messages over one socket; `limit` is the longest that is read, in octets."""

    def __init__(self, connection: socket.socket, *, limit: int) -> None:
        self._socket = connection
        self._reader = connection.makefile("rb")
        self._limit = limit

    def send(self, number: int, message: AnyRequest | KeyHostResponse, *, timeout: float) -> None:
        """Send a message within `timeout` seconds; raises OSError."""
        payload = encode(message)
        self._socket.settimeout(timeout)
        self._socket.sendall(_HEAD.pack(len(payload), number) + payload)

    def receive(self, *, timeout: float, is_idle: bool = False) -> tuple[int, bytes]:
        """Return the next message's number and payload; `is_idle`: the time starts with its first octet.

        Raises `ConnectionLost` and OSError.
        """
        if is_idle:
            self._socket.settimeout(None)
            self._reader.peek(1)
        self._socket.settimeout(timeout)
        length, number = _HEAD.unpack(self._read(_HEAD.size))
        if length > self._limit:
            raise ConnectionLost(f"a message of {length} octets")
        return number, self._read(length)

    def is_quiet(self) -> bool:
        """Whether the other side is there and has sent nothing unasked."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return not waiting.poll(0)

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def _read(self, length: int) -> bytes:
        found = self._reader.read(length)
        if len(found) < length:
            raise ConnectionLost("the other side went away")
        return found
