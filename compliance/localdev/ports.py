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
WEB_RANGE = range(WEB_DEFAULT + 1, WEB_DEFAULT + 100)
BACKLOG = 1024


def free_port() -> int:
    """Return a port on which nobody listens. Raises: StepFailed."""
    with _listen_on_first(_some_private()) as probe:
        return port_of(probe)


def private_port(path: Path, name: str) -> int:
    """Return the port kept in `path` for the server `name` if it is free, else a new one, which is kept."""
    candidates = [*filter(None, [read_json(path).get(name)]), *_some_private()]
    with _listen_on_first(candidates) as probe:
        return _keep(path, name, port_of(probe))


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
            hint = "stop that program, choose another PORT, or leave PORT unset to have a free one chosen"
            message = f"port {asked} can't be used: another program listens on it, or it is reserved"
            raise StepFailed(message, hint=hint) from error
    candidates = [*filter(None, [read_json(path).get("web")]), WEB_DEFAULT, *WEB_RANGE]
    listener = _listen_on_first(candidates)
    port = _keep(path, "web", port_of(listener))
    if port != WEB_DEFAULT:
        say(f"  … using port {port}")
    return listener


def port_of(listener: socket.socket) -> int:
    """Return the port on which a socket listens."""
    return int(listener.getsockname()[1])


def _some_private() -> list[int]:
    return random.sample(PRIVATE_RANGE, 200)


def _listen_on_first(candidates: Iterable[int]) -> socket.socket:
    for port in candidates:
        with suppress(OSError):
            return socket.create_server((HOST, port), backlog=BACKLOG)
    raise StepFailed("no free port was found on 127.0.0.1", hint="stop some servers")


def _keep(path: Path, name: str, port: int) -> int:
    kept = read_json(path)
    if kept.get(name) != port:
        write_json(path, kept | {name: port})
    return port
