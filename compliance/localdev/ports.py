"""TCP ports on the loopback interface: chosen once and kept, or chosen again if another program took them."""

import random
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .console import StepFailed, say
from .state import read_json, write_json

HOST = "127.0.0.1"
WEB_DEFAULT = 8000
# Below the kernel's ephemeral range: no outgoing connection takes a port that we want again.
PRIVATE_RANGE = range(20000, 32000)
BACKLOG = 1024


def free_port() -> int:
    """Return a port on which nobody listens. Raises: StepFailed."""
    with _listen_on_first(random.sample(PRIVATE_RANGE, 200)) as probe:
        return int(probe.getsockname()[1])


def private_port(path: Path, name: str) -> int:
    """Return the port kept in `path` for the server `name` if it is free, else a new one, which is kept."""
    with _kept_listener(path, name, random.sample(PRIVATE_RANGE, 200)) as probe:
        return int(probe.getsockname()[1])


def web_listener(path: Path, *, asked: str | None) -> socket.socket:
    """Open the web server's socket: on `asked` (the variable PORT), else the kept port, 8000 or a free one.

    It listens from now on, so that no other program gets the port before the web server runs, or while it
    restarts: the address stands in the CAs' certificates. Only a port of our own choice is kept.
    Raises StepFailed if `asked` is no port or is taken.
    """
    if asked:
        if not asked.isascii() or not asked.isdigit() or not 0 < int(asked) < 65536:
            raise StepFailed(f"PORT={asked} is no port", hint="give a number from 1 to 65535")
        try:
            return socket.create_server((HOST, int(asked)), backlog=BACKLOG)
        except OSError as error:
            hint = "choose another PORT, or leave PORT unset to have a free one chosen"
            raise StepFailed(f"port {asked} is taken by another program, or reserved", hint=hint) from error
    listener = _kept_listener(path, "web", range(WEB_DEFAULT, WEB_DEFAULT + 100))
    if (port := listener.getsockname()[1]) != WEB_DEFAULT:
        say(f"  … using port {port}")
    return listener


def _listen_on_first(candidates: Iterable[int]) -> socket.socket:
    for port in candidates:
        with suppress(OSError):
            return socket.create_server((HOST, port), backlog=BACKLOG)
    raise StepFailed("no free port was found on 127.0.0.1", hint="stop some servers")


def _kept_listener(path: Path, name: str, others: Iterable[int]) -> socket.socket:
    """Listen on the port kept in `path` under `name`, else on one of `others`, which is then kept."""
    kept = read_json(path)
    listener = _listen_on_first([*filter(None, [kept.get(name)]), *others])
    write_json(path, kept | {name: listener.getsockname()[1]})
    return listener
