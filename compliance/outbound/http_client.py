"""One request to a URL that others gave: to checked addresses only, over verified TLS, in bounded time.

Timeouts of sockets and HTTP libraries bound one read each, so a slow receiver could hold a sender for hours.
Here the whole exchange runs in a thread that is cut off at the deadline.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, IncompleteRead, parse_headers

import certifi
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.response import BaseHTTPResponse
from urllib3.util import parse_url

from compliance.outbound.addresses import Target, UrlPolicy, UrlRefused, check_url, permitted

MAX_BODY_BYTES = 4096
MAX_ERROR_LENGTH = 255
MAX_ADDRESSES = 8
MOST_RETRY_AFTER = timedelta(hours=1)
RETRY_LATER = (429, 503)
GONE = 410
DEFECT = "The sender failed; its operator's log says why"

# Host and port in; addresses as text out. Raises `OSError` when the name has none.
Resolver = Callable[[str, int], list[str]]


def resolve(host: str, port: int) -> list[str]:
    """Return each address of `host` once, as the system's resolver orders them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True)
class RequestOptions:
    """Allowed URLs, longest duration, and root certificates: a PEM file, or None for the public ones."""

    policy: UrlPolicy
    timeout_seconds: float
    ca_file: str | None = None
    resolver: Resolver = resolve


@dataclass(frozen=True)
class Outcome:
    """The result of one attempt; `error` says why there is no complete response.

    `retry_after` is how long a busy receiver (429, 503) asks to wait, at most an hour.
    """

    duration: timedelta
    response_status: int | None = None
    response_body: str | None = None  # the first 4 KB
    error: str | None = None
    retry_after: timedelta = timedelta()
    content_type: str = ""  # without parameters

    @property
    def is_gone(self) -> bool:
        """Return whether the receiver says that it is not coming back (RFC 9110 §15.5.11)."""
        return self.error is None and self.response_status == GONE

    @property
    def succeeded(self) -> bool:
        """Return whether a complete response with a 2xx status came; a redirect is a failure."""
        return self.error is None and self.response_status is not None and 200 <= self.response_status < 300


@dataclass(frozen=True)
class Download:
    """A complete answer; `cache_control` is its header."""

    status: int
    body: bytes
    cache_control: str


class SendingFailed(Exception):
    """The request could not be sent or answered; the text tells the webhook's owner why."""


def send(
    url: str, *, body: bytes, headers: Mapping[str, str], options: RequestOptions, method: str = "POST"
) -> Outcome:
    """Send `body` once, without redirects, proxies or credentials from the process's environment.

    `options.timeout_seconds` bounds everything from name resolution to the last byte. Faults of the receiver
    or the network are an `Outcome`, never an exception.
    """
    return _Exchange(method, url, body, headers, options, MAX_BODY_BYTES).outcome()


def fetch(
    url: str,
    *,
    headers: Mapping[str, str],
    most_bytes: int,
    options: RequestOptions,
    body: bytes | None = None,
) -> Download:
    """GET the URL, or POST `body` to it. Raises: SendingFailed, also for more than `most_bytes`."""
    method = "GET" if body is None else "POST"
    exchange = _Exchange(method, url, body, headers, options, most_bytes + 1)
    outcome = exchange.outcome()
    if outcome.error is not None or outcome.response_status is None:
        raise SendingFailed(outcome.error or DEFECT)
    if len(exchange.received) > most_bytes:
        raise SendingFailed(f"The answer is longer than {most_bytes} bytes")
    return Download(outcome.response_status, exchange.received, exchange.cache_control)


@dataclass
class _Exchange:
    """One request and its response, which another thread can cut off at any point."""

    method: str
    url: str
    body: bytes | None
    headers: Mapping[str, str]
    options: RequestOptions
    most_bytes: int
    received: bytes = b""
    cache_control: str = ""
    _content_type: str = ""
    _retry_after: timedelta = timedelta()
    _started: float = field(default_factory=time.monotonic)
    _resources: ExitStack = field(default_factory=ExitStack)
    _socket: socket.socket | None = None
    _status: int | None = None
    _text: str | None = None
    _error: str | None = DEFECT

    def run(self) -> None:
        try:
            response = self._request(check_url(self.url, self.options.policy))
            self._status = response.status
            self.cache_control = response.headers.get("cache-control", "")
            self._content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status in RETRY_LATER:
                self._retry_after = _retry_after(response.headers.get("retry-after", ""))
            self.received = _first_bytes(response, self.most_bytes)
            # As PostgreSQL can store it, at most 4 KB in UTF-8.
            text = self.received[:MAX_BODY_BYTES].decode("utf-8", errors="replace").replace("\x00", "\ufffd")
            self._text = text.encode()[:MAX_BODY_BYTES].decode("utf-8", errors="ignore")
            self._error = None
        except (SendingFailed, UrlRefused) as failure:
            self._error = str(failure)
        except LocationParseError:
            self._error = "The URL can't be requested"
        except (HTTPError, HTTPException, OSError) as failure:
            # Its type alone: the failure, kept by this frame, would keep the socket.
            cause = type(failure.__cause__ or failure)
            if issubclass(cause, TimeoutError):
                self._error = str(self._timed_out())
            elif issubclass(cause, ConnectionResetError | BrokenPipeError | IncompleteRead):
                self._error = "Connection closed before a complete answer came"
            else:
                self._error = f"No valid HTTP answer: {cause.__name__}"
        finally:
            self._resources.close()

    def outcome(self) -> Outcome:
        """Make the request; cut off what does not end in time."""
        # In a thread, because the system's resolver takes no timeout and cannot be interrupted.
        thread = threading.Thread(target=self.run, name="guarded-request", daemon=True)
        thread.start()
        thread.join(self.options.timeout_seconds)
        duration = timedelta(seconds=time.monotonic() - self._started)
        if not thread.is_alive():
            error = self._error and self._error[:MAX_ERROR_LENGTH]
            return Outcome(duration, self._status, self._text, error, self._retry_after, self._content_type)
        # Not SSLSocket.shutdown(), which would take the TLS state away from the thread that reads.
        with suppress(OSError):
            if self._socket is not None:
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        return Outcome(duration, self._status, error=str(self._timed_out()))

    def _request(self, target: Target) -> BaseHTTPResponse:
        path = parse_url(self.url).request_uri
        # The deadline comes before the socket's own timeout.
        connection = HTTPConnection(target.host, target.port, timeout=self.options.timeout_seconds + 1)
        connection.response_class = _FinalResponse
        self._resources.callback(connection.close)
        connection.sock = self._cut_off_in_time(self._dial(target))
        connection.sock.settimeout(self.options.timeout_seconds + 1)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.scheme == "https":
            connection.sock = self._secure(connection.sock, target.host)
        headers = {"Host": target.authority, **self.headers}
        connection.request(self.method, path, self.body, headers, preload_content=False)
        return connection.getresponse()

    def _dial(self, target: Target) -> socket.socket:
        """Connect to a permitted address; the name is resolved once."""
        try:
            found = self.options.resolver(target.host, target.port)
        except (OSError, UnicodeError) as error:
            raise SendingFailed("The host's name could not be resolved") from error
        addresses = permitted(found, self.options.policy)[:MAX_ADDRESSES]
        failure = SendingFailed("The host has no address")
        for position, address in enumerate(addresses):
            # One dead address must not use up the time of those behind it.
            share = self._remaining() / (len(addresses) - position)
            try:
                return socket.create_connection((str(address), target.port), timeout=share)
            except TimeoutError:
                failure = self._timed_out()
            except ConnectionRefusedError:
                failure = SendingFailed("Connection refused")
            except OSError as error:
                failure = SendingFailed(f"Could not connect: {error.strerror or type(error).__name__}")
        raise failure

    def _secure(self, sock: socket.socket, host: str) -> socket.socket:
        """Wrap `sock` in TLS, the certificate verified for `host`."""
        context = tls_context(self.options.ca_file)
        try:
            # The handshake comes after: within wrap_socket() the deadline could not reach it.
            wrapped = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
            self._cut_off_in_time(wrapped)
            wrapped.do_handshake()
        except ssl.SSLCertVerificationError as error:
            raise SendingFailed(f"TLS certificate not valid: {error.verify_message}") from error
        except ssl.SSLError as error:
            raise SendingFailed(f"TLS handshake failed: {error.reason or 'no reason given'}") from error
        except OSError as error:
            raise SendingFailed("Connection lost in the TLS handshake") from error
        return wrapped

    def _cut_off_in_time(self, sock: socket.socket) -> socket.socket:
        """Make `sock` the one that `finish` shuts down; raises if the deadline has passed already."""
        self._socket = self._resources.enter_context(sock)
        self._remaining()
        return sock

    def _remaining(self) -> float:
        """Return the seconds left, more than 0; raises `SendingFailed`."""
        left = self._started + self.options.timeout_seconds - time.monotonic()
        if left <= 0:
            raise self._timed_out()
        return left

    def _timed_out(self) -> SendingFailed:
        return SendingFailed(f"Timed out: no complete answer within {self.options.timeout_seconds:g} s")


class _FinalResponse(HTTPResponse):
    """The response that follows interim ones (RFC 9110 §15.2); `HTTPResponse` skips those with 100 only."""

    def _read_status(self) -> tuple[str, int, str]:
        found = super()._read_status()  # type: ignore[misc]
        while 100 <= found[1] < 200 and found[1] != HTTPStatus.SWITCHING_PROTOCOLS:
            parse_headers(self.fp)
            found = super()._read_status()  # type: ignore[misc]
        return found  # type: ignore[no-any-return]


def _retry_after(value: str) -> timedelta:
    """Read seconds or a date (RFC 9110 §10.2.3); what is neither counts as nothing."""
    try:
        if value.isascii() and value.isdigit():
            wait = timedelta(seconds=min(int(value), MOST_RETRY_AFTER.total_seconds()))
        else:
            at = parsedate_to_datetime(value)
            wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - datetime.now(UTC)
    except (ValueError, OverflowError):
        return timedelta()
    return min(max(wait, timedelta()), MOST_RETRY_AFTER)


@cache
def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Return the context of a client that trusts these roots, or the public ones."""
    # Kept for the process: reading the root certificates takes longer than a handshake.
    context = ssl.create_default_context(cafile=ca_file or certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _first_bytes(response: BaseHTTPResponse, most: int) -> bytes:
    """Read at most so many bytes of the body, and close the connection."""
    found, is_complete = b"", False
    try:
        # Only the read that finds the end tells whether the body is as long as announced.
        while len(found) < most and not is_complete:
            piece = response.read(most - len(found), decode_content=False)
            found, is_complete = found + piece, not piece
    finally:
        response.close()
    return found
