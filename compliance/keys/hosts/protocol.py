"""Messages of key hosts and callers, one each a connection, on sockets in a folder of their user."""

import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, get_type_hints

import msgspec

from compliance.core.environments import Environment
from compliance.keys import base
from compliance.keys.pkcs11 import operations, wrapping
from compliance.keys.pkcs11.backend import Pkcs11Backend

SOCKET: Final = "host-{}.sock"
MAX_REQUEST: Final = 64 * 1024
MAX_RESPONSE: Final = 64 * 1024 * 1024  # for a listing of 100,000 keys
_CREDENTIALS: Final = struct.Struct("3i")

OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    operation.__name__: operation
    for operation in (
        *(operations.generate, operations.sign, operations.read, operations.destroy, operations.list_keys),
        *(wrapping.make_wrapping_key, wrapping.generate_wrapped, wrapping.sign_wrapped, wrapping.wrap_anew),
        *(Pkcs11Backend.check, Pkcs11Backend.check_open),
        *(Pkcs11Backend.find_tokens, Pkcs11Backend.make_tokens),
    )
}
"""Operations of a token, which get one of its sessions, and of the host's backend itself."""
ERRORS: Final[dict[str, type[Exception]]] = {
    error.__name__: error
    for error in (
        base.KeyServiceNotConfigured,
        base.KeyServiceUnavailable,
        base.KeyMismatch,  # before the error that it is a kind of
        base.KeyNotFound,
        ValueError,
    )
}


class ConnectionLost(OSError):
    """The other side went away or broke the protocol."""


class ForeignOwner(OSError):
    """The folder, or the process at the other end, belongs to another user."""


class KeyHostRequest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An operation of a token, or, without one, of the host's backend."""

    environment: Environment
    token: str
    operation: str
    arguments: msgspec.Raw


class KeyHostResponse(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The result of a request in msgpack, or one of `ERRORS`."""

    result: msgspec.Raw = msgspec.Raw(b"\xc0")
    failure: str = ""
    message: str = ""
    retry_after: int | None = None


Message = TypeVar("Message", KeyHostRequest, KeyHostResponse)
LONGEST: Final = {KeyHostRequest: MAX_REQUEST, KeyHostResponse: MAX_RESPONSE}
encode: Final = msgspec.msgpack.Encoder().encode


def decode(payload: bytes | msgspec.Raw, kind: Any) -> Any:
    """Decode a message or a part of one; raises `ConnectionLost`."""
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ConnectionLost("not a message") from error


@cache
def types_of(operation: str) -> tuple[Any, Any]:
    """Return the types of an operation's arguments, as a tuple, and of its result."""
    if operation not in OPERATIONS:
        raise ConnectionLost("not an operation")
    hints = get_type_hints(OPERATIONS[operation])
    hints.pop("session", None)  # a token's operation gets it in the host
    *arguments, result = hints.values()
    return tuple.__class_getitem__(tuple(arguments)), result


def send(connection: socket.socket, message: KeyHostRequest | KeyHostResponse, *, seconds: float) -> None:
    connection.settimeout(seconds)
    connection.sendall(encode(message))
    connection.shutdown(socket.SHUT_WR)


def receive(connection: socket.socket, kind: type[Message], *, seconds: float) -> Message:
    """Read the other side's only message, within `seconds`; raises OSError, also if it is too long."""
    payload, deadline = bytearray(), time.monotonic() + seconds
    while len(payload) <= LONGEST[kind]:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the message took too long")
        connection.settimeout(left)
        part = connection.recv(MAX_REQUEST)
        if not part:
            message: Message = decode(bytes(payload), kind)
            return message
        payload += part
    raise ConnectionLost("the message is too long")


def listen(folder: Path, number: int, *, backlog: int) -> socket.socket:
    """Listen in place of a host that has died; the socket's name appears once it listens."""
    make_folder(folder)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = f".{SOCKET.format(number)}.{os.getpid()}"
    before = os.umask(0o177)
    try:
        with _short_path(folder, temporary) as path:
            listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(backlog)
    (folder / temporary).replace(folder / SOCKET.format(number))
    return listener


def connect(folder: Path, number: int, *, timeout: float) -> socket.socket:
    """Connect to a host of this user; raises OSError."""
    with _short_path(folder, SOCKET.format(number)) as path:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(path)
            require_same_user(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def make_folder(folder: Path) -> None:
    """Make the folder; raises `ForeignOwner` if it is another user's or open to others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_private(folder.stat(), folder)


def require_same_user(connection: socket.socket) -> None:
    """Raise `ForeignOwner` if another user's process is at the other end (SO_PEERCRED); root is trusted."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(found)
    if user not in (os.geteuid(), 0):
        raise ForeignOwner(f"a process of user {user}")


@contextmanager
def _short_path(folder: Path, name: str) -> Iterator[str]:
    """Yield a path to the socket that fits `sun_path`, in a folder that is private."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _require_private(os.fstat(descriptor), folder)
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _require_private(found: os.stat_result, folder: Path) -> None:
    if found.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(found.st_mode) & 0o077:
        raise ForeignOwner(f"{folder} belongs to another user or is open to others")
