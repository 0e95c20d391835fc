"""TCP ports on the loopback interface: chosen once, kept, and chosen anew when somebody else took them."""

import random
import socket
from contextlib import suppress
from pathlib import Path

from .console import StepFailed, say
from .state import read_json, write_json

HOST = "127.0.0.1"
WEB_DEFAULT = 8000
# Below the kernel's ephemeral range, so that no outgoing connection sits on a port we want again.
PRIVATE_RANGE = range(20000, 32000)
WEB_RANGE = range(WEB_DEFAULT + 1, WEB_DEFAULT + 100)
ATTEMPTS = 200
BACKLOG = 1024


def is_free(port: int) -> bool:
    """Whether a server could listen on `port` now; connections in TIME_WAIT don't count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def answers(host: str, port: int, *, timeout: float = 1.0) -> bool:
    """Whether something accepts TCP connections there within `timeout` seconds."""
    try:
        with socket.create_connection((host, port), timeout=timeout):
            return True
    except OSError:
        return False


def private_port(path: Path, name: str) -> int:
    """The kept port of the server `name` if it is still free, else a new one, kept in `path`."""
    kept = read_json(path)
    port = kept.get(name)
    if isinstance(port, int) and is_free(port):
        return port
    return _keep(path, name, _search(random.sample(PRIVATE_RANGE, ATTEMPTS)))


def web_listener(path: Path, *, asked: str | None) -> socket.socket:
    """The web server's socket: on `asked` (the variable PORT), or the kept port, 8000, the next free one.

    It listens already: nobody else gets the port while the web server is started, or started again. That may
    take minutes, and by then the address stands in the CAs' certificates.
    Raises StepFailed when `asked` is no port or is taken. Only a port of our own choice is kept.
    """
    if asked:
        return _asked_port(asked)
    kept = read_json(path).get("web")
    candidates = [kept] if isinstance(kept, int) else []
    listener = _listen_on_first([*candidates, WEB_DEFAULT, *WEB_RANGE])
    port = port_of(listener)
    if port != WEB_DEFAULT:
        say(
            f"  … port {WEB_DEFAULT} is taken; using {port}"
            if not is_free(WEB_DEFAULT)
            else f"  … using port {port} again"
        )
    _keep(path, "web", port)
    return listener


def port_of(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port


def _asked_port(asked: str) -> socket.socket:
    if not asked.isascii() or not asked.isdigit() or not 0 < int(asked) < 65536:
        raise StepFailed(f"PORT={asked} is no port", hint="give a number from 1 to 65535")
    port = int(asked)
    try:
        return _listen(port)
    except OSError as error:
        raise StepFailed(
            f"port {port} can't be used: another program listens on it, or it is reserved",
            hint="stop that program, choose another PORT, or leave PORT unset to have a free one chosen",
        ) from error


def _listen(port: int) -> socket.socket:
    return socket.create_server((HOST, port), backlog=BACKLOG)


def _listen_on_first(candidates: list[int]) -> socket.socket:
    for port in candidates:
        with suppress(OSError):
            return _listen(port)
    raise _none_free()


def _search(candidates: list[int]) -> int:
    for port in candidates:
        if is_free(port):
            return port
    raise _none_free()


def _none_free() -> StepFailed:
    return StepFailed("no free port was found on 127.0.0.1", hint="stop some servers, or set PORT")


def _keep(path: Path, name: str, port: int) -> int:
    kept = read_json(path)
    if kept.get(name) != port:
        write_json(path, kept | {name: port})
    return port
