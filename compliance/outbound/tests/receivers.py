"""Real receivers on loopback, well and badly behaved: each connection is a thread with a script."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

# Far beyond what a test waits for.
HANG_SECONDS = 600.0


@dataclass(frozen=True)
class Received:
    """A request as it came over the wire; header names in lower case."""

    request_line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """A listening receiver; `received` grows as requests come in."""

    host: str
    port: int
    scheme: str = "http"
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}/hook"


# What a receiver does with a connection once it has read the request.
Script = Callable[[socket.socket, Receiver], None]


def answer(status: int, body: bytes = b"ok", *headers: str) -> Script:
    """A complete answer."""
    head = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", "Connection: close", *headers]
    raw = "\r\n".join(head).encode() + b"\r\n\r\n" + body
    return lambda connection, receiver: connection.sendall(raw)


def answers(*statuses: int) -> Script:
    """One status after the other, the last for ever."""

    def script(connection: socket.socket, receiver: Receiver) -> None:
        position = min(len(receiver.received), len(statuses)) - 1
        answer(statuses[position])(connection, receiver)

    return script


def silence(connection: socket.socket, receiver: Receiver) -> None:
    """Never an answer."""
    receiver.stopping.wait(HANG_SECONDS)


def drip_headers(connection: socket.socket, receiver: Receiver) -> None:
    """A status line, then header bytes for ever, each well inside a read's timeout."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Drip: ")
    while not receiver.stopping.wait(0.05):
        connection.sendall(b"x")


def drip_body(connection: socket.socket, receiver: Receiver) -> None:
    """A 200, then body bytes for ever."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not receiver.stopping.wait(0.05):
        connection.sendall(b"x")


def reset(connection: socket.socket, receiver: Receiver) -> None:
    """The connection reset without an answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def cut_short(connection: socket.socket, receiver: Receiver) -> None:
    """A 200 whose body ends before its length."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")


def huge(connection: socket.socket, receiver: Receiver) -> None:
    """A 200 with a body without end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
    while not receiver.stopping.is_set():
        connection.sendall(b"0123456789abcdef" * 4096)


def huge_redirect(connection: socket.socket, receiver: Receiver) -> None:
    """A redirect to the same receiver, with a body without end."""
    head = f"HTTP/1.1 302 Found\r\nLocation: {receiver.url}\r\nConnection: close\r\n\r\n"
    connection.sendall(head.encode())
    while not receiver.stopping.is_set():
        connection.sendall(b"0123456789abcdef" * 4096)


def nonsense(connection: socket.socket, receiver: Receiver) -> None:
    """No HTTP at all."""
    connection.sendall(b"220 mail.example.com ESMTP\r\n")


@contextmanager
def receiving(
    script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Iterator[Receiver]:
    """A receiver on a free port of loopback, gone when the block ends."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((host, 0))
        listener.listen(64)
        receiver = Receiver(
            f"[{host}]" if ":" in host else host, listener.getsockname()[1], "https" if tls else "http"
        )
        threads: list[threading.Thread] = []
        acceptor = threading.Thread(target=_accept, args=(listener, receiver, script, tls, threads))
        acceptor.start()
        try:
            yield receiver
        finally:
            receiver.stopping.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            acceptor.join()
            for thread in threads:
                thread.join(timeout=60)


def _accept(
    listener: socket.socket,
    receiver: Receiver,
    script: Script,
    tls: ssl.SSLContext | None,
    threads: list[threading.Thread],
) -> None:
    while not receiver.stopping.is_set():
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        receiver.connections += 1
        thread = threading.Thread(target=_serve, args=(connection, receiver, script, tls))
        threads.append(thread)
        thread.start()


def _serve(connection: socket.socket, receiver: Receiver, script: Script, tls: ssl.SSLContext | None) -> None:
    connection.settimeout(60)
    with suppress(OSError), connection:
        if tls is None:
            _converse(connection, receiver, script)
            return
        with tls.wrap_socket(connection, server_side=True) as wrapped:
            _converse(wrapped, receiver, script)


def _converse(connection: socket.socket, receiver: Receiver, script: Script) -> None:
    received = _read_request(connection)
    if received is not None:
        receiver.received.append(received)
        script(connection, receiver)


def _read_request(connection: socket.socket) -> Received | None:
    with connection.makefile("rb") as stream:
        request_line = stream.readline().decode().rstrip()
        if not request_line:
            return None
        headers: dict[str, str] = {}
        while line := stream.readline().decode().rstrip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Received(request_line, headers, stream.read(int(headers.get("content-length", 0))))
