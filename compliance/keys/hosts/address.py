"""Where hosts listen: sockets in a folder that only their user may enter, and who is at the other end."""

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LONGEST: Final = 100
"""Octets of a path that fit `sun_path`; a longer one goes through the folder's descriptor."""
_CREDENTIALS: Final = struct.Struct("3i")


class NotOurs(OSError):
    """The folder or the process at the other end belongs to another user."""


def name_of(number: int) -> str:
    """The socket's name of one host."""
    return f"host-{number}.sock"


def make_folder(folder: Path) -> None:
    """Make it, closed to everyone else; raises `NotOurs` when it is another's or open to others."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_ours(folder.stat(), folder)


def listen(folder: Path, number: int, *, backlog: int) -> socket.socket:
    """A socket that listens, in place of one that a dead host left; it appears only once it listens."""
    make_folder(folder)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    making = f".{name_of(number)}.{os.getpid()}"
    before = os.umask(0o177)
    try:
        with _reachable(folder, making) as path:
            listener.bind(path)
    finally:
        os.umask(before)
    listener.listen(backlog)
    (folder / making).replace(folder / name_of(number))
    return listener


def connect(folder: Path, number: int, *, timeout: float) -> socket.socket:
    """A connection to a host of our own user; raises OSError."""
    with _reachable(folder, name_of(number)) as path:
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
    """Raises `NotOurs` when another user's process is at the other end (SO_PEERCRED); root's is trusted."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(found)
    if user not in (os.geteuid(), 0):
        raise NotOurs(f"a process of user {user}")


@contextmanager
def _reachable(folder: Path, name: str) -> Iterator[str]:
    """A path to the socket that is short enough, in a folder that is ours."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _require_ours(os.fstat(descriptor), folder)
        path = str(folder / name)
        yield path if len(os.fsencode(path)) <= LONGEST else f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _require_ours(found: os.stat_result, folder: Path) -> None:
    if found.st_uid not in (os.geteuid(), 0) or stat.S_IMODE(found.st_mode) & 0o077:
        raise NotOurs(f"{folder} belongs to another user or is open to others")
