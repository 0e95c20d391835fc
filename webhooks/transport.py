"""Sockets for sending to strangers: to checked addresses only, and never past one total deadline.

The timeouts of sockets and HTTP libraries bound one read each, so a receiver that drips a byte now and
then could hold a sender for hours. Here every operation on the socket gets what is left of the deadline.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from typing import TYPE_CHECKING, Any

import certifi

from webhooks.addresses import Address, Target, UrlPolicy, permitted

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MAX_ADDRESSES = 8

# Host and port in; addresses as text out. Raises `OSError` when the name has none.
Resolver = Callable[[str, int], list[str]]


class SendingFailed(Exception):
    """The request could not be sent or answered; the text says why, for the webhook's owner.

    Not an `OSError`, so that the HTTP libraries let it through as it is.
    """


class DeadlineExceeded(SendingFailed):
    """The whole exchange took longer than it may."""


class Deadline:
    """A moment on the monotonic clock, `seconds` after its making."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    def remaining(self) -> float:
        """Seconds left, more than 0; raises `DeadlineExceeded`."""
        left = self._at - time.monotonic()
        if left <= 0:
            raise self.exceeded()
        return left

    def exceeded(self) -> DeadlineExceeded:
        return DeadlineExceeded(f"Timed out: no complete answer within {self.seconds:g} s")


class _Timed(socket.socket):
    """A socket whose every operation gets what is left of `deadline`."""

    deadline: Deadline

    def recv_into(self, *args: Any) -> int:
        self.settimeout(self.deadline.remaining())
        try:
            return super().recv_into(*args)
        except TimeoutError as error:
            raise self.deadline.exceeded() from error

    def send(self, data: "ReadableBuffer", flags: int = 0) -> int:
        self.settimeout(self.deadline.remaining())
        try:
            return super().send(data, flags)
        except TimeoutError as error:
            raise self.deadline.exceeded() from error

    def sendall(self, data: "ReadableBuffer", flags: int = 0) -> None:
        self.settimeout(self.deadline.remaining())
        try:
            super().sendall(data, flags)
        except TimeoutError as error:
            raise self.deadline.exceeded() from error


class _TimedTls(_Timed, ssl.SSLSocket):
    """The same over TLS."""


def resolve(host: str, port: int) -> list[str]:
    """The system's resolver; each address once."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def dial(target: Target, *, policy: UrlPolicy, deadline: Deadline, resolver: Resolver) -> socket.socket:
    """A connection to `target`'s host at an address that `policy` permits; the name is resolved once.

    Raises `UrlRefused` when no address is permitted, else `SendingFailed`.
    """
    addresses = permitted(_resolve_in_time(target, deadline, resolver), policy)[:MAX_ADDRESSES]
    failure = SendingFailed("The host has no address")
    for position, address in enumerate(addresses):
        # One dead address must not use up the time of the living ones behind it.
        share = deadline.remaining() / (len(addresses) - position)
        try:
            return _connect(address, target.port, share, deadline)
        except TimeoutError:
            failure = SendingFailed("Timed out while connecting")
        except ConnectionRefusedError:
            failure = SendingFailed("Connection refused")
        except OSError as error:
            failure = SendingFailed(f"Could not connect: {error.strerror or type(error).__name__}")
    raise failure


def secure(raw: socket.socket, host: str, *, deadline: Deadline, ca_file: str | None) -> ssl.SSLSocket:
    """TLS over `raw`, the certificate verified for `host`; raises `SendingFailed`."""
    raw.settimeout(deadline.remaining())
    try:
        wrapped = _context(ca_file).wrap_socket(raw, server_hostname=host)
    except TimeoutError as error:
        raise deadline.exceeded() from error
    except ssl.SSLCertVerificationError as error:
        raise SendingFailed(f"TLS certificate not valid: {error.verify_message}") from error
    except ssl.SSLError as error:
        raise SendingFailed(f"TLS handshake failed: {error.reason or 'no reason given'}") from error
    except OSError as error:
        raise SendingFailed("Connection lost in the TLS handshake") from error
    wrapped.deadline = deadline  # type: ignore[attr-defined]
    return wrapped


@cache
def _context(ca_file: str | None) -> ssl.SSLContext:
    """Reading the root certificates takes longer than a handshake: once in a process."""
    context = ssl.create_default_context(cafile=ca_file or certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sslsocket_class = _TimedTls
    return context


def _connect(address: Address, port: int, seconds: float, deadline: Deadline) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = _Timed(family, socket.SOCK_STREAM)
    try:
        sock.deadline = deadline
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(seconds)
        sock.connect((str(address), port))
    except BaseException:
        sock.close()
        raise
    return sock


def _resolve_in_time(target: Target, deadline: Deadline, resolver: Resolver) -> list[str]:
    """Resolve in a thread of its own, since the system's resolver takes no timeout and can't be stopped."""
    answer: Future[list[str]] = Future()
    thread = threading.Thread(
        target=_answer, args=(answer, resolver, target), name="webhooks-resolver", daemon=True
    )
    thread.start()
    try:
        return answer.result(timeout=deadline.remaining())
    except TimeoutError as error:
        raise deadline.exceeded() from error
    except (OSError, UnicodeError) as error:
        raise SendingFailed("The host's name could not be resolved") from error


def _answer(answer: "Future[list[str]]", resolver: Resolver, target: Target) -> None:
    try:
        answer.set_result(resolver(target.host, target.port))
    except Exception as error:  # noqa: BLE001  (handed to the waiting thread, which decides)
        answer.set_exception(error)
