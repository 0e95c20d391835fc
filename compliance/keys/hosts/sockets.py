"""Unix-domain sockets of the key hosts, in a folder that only their user may enter."""

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LONGEST_PATH: Final = 100  # octets that fit `sun_path`
_CREDENTIALS: Final = struct.Struct("3i")


class ForeignOwner(OSError):
    """The folder, or the process at the other end, belongs to another user."""


def socket_name(number: int) -> str:
    return f"host-{number}.sock"


def make_folder(folder: Path) -> None:
    """Make the folder; raises `ForeignOwner` if it is another user's or open to others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_private(folder.stat(), folder)


def listen(folder: Path, number: int, *, backlog: int) -> socket.socket:
    """Listen in place of a host that has died; the socket's name appears once it listens."""
    make_folder(folder)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = f".{socket_name(number)}.{os.getpid()}"
    before = os.umask(0o177)
    try:
        with _short_path(folder, temporary) as path:
            listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(backlog)
    (folder / temporary).replace(folder / socket_name(number))
    return listener


def connect(folder: Path, number: int, *, timeout: float) -> socket.socket:
    """Connect to a host of this user; raises OSError."""
    with _short_path(folder, socket_name(number)) as path:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(path)
            require_same_user(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def require_same_user(connection: socket.socket) -> None:
    """Raise `ForeignOwner` if another user's process is at the other end (SO_PEERCRED); root is trusted."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(found)
    if user not in (os.geteuid(), 0):
        raise ForeignOwner(f"a process of user {user}")


@contextmanager
def _short_path(folder: Path, name: str) -> Iterator[str]:
    """Yield a path to the socket that is short enough, in a folder that is private."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _require_private(os.fstat(descriptor), folder)
        path = str(folder / name)
        yield path if len(os.fsencode(path)) <= LONGEST_PATH else f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _require_private(found: os.stat_result, folder: Path) -> None:
    if found.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(found.st_mode) & 0o077:
        raise ForeignOwner(f"{folder} belongs to another user or is open to others")
