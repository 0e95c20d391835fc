"""One request to the provider: within one deadline, of bounded size, without redirects or proxies."""

import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

import certifi

from compliance.core.circuit_breaker import CircuitBreaker
from people.errors import ProviderUnavailable
from people.sso.configuration import SignOn, is_safe_address

MAX_BYTES: Final = 256 * 1024

# A provider that is away keeps threads for its first callers only.
circuit: Final = CircuitBreaker(
    lambda seconds: ProviderUnavailable("did not answer a moment ago", retry_after=int(seconds) + 1),
    failures=(ProviderUnavailable,),
    longest_pause=8.0,
)


@dataclass(frozen=True)
class Fetched:
    """A complete answer of the provider."""

    status: int
    body: bytes


def fetch(
    url: str, *, config: SignOn, body: str | None = None, headers: Mapping[str, str] | None = None
) -> Fetched:
    """GET the address, or POST `body` to it. Raises: ProviderUnavailable.

    `OIDC_TIMEOUT_SECONDS` bounds everything from name resolution to the last byte.
    """
    if not is_safe_address(url):
        raise ProviderUnavailable("named an address without HTTPS")
    exchange = _Inquiry(url, config, body, {"Accept": "application/json", **(headers or {})})
    with circuit.guarding():
        # In a thread, as the system's resolver takes no timeout, and a socket's bounds one read alone.
        thread = threading.Thread(target=exchange.run, name="sign-on-request", daemon=True)
        thread.start()
        thread.join(config.timeout_seconds)
        return exchange.finish(in_time=not thread.is_alive())


class _Inquiry:
    """A request and its answer, which another thread can cut off."""

    def __init__(self, url: str, config: SignOn, body: str | None, headers: dict[str, str]) -> None:
        parts = urlsplit(url)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._body, self._headers, self._timeout = body, headers, config.timeout_seconds
        self._socket: socket.socket | None = None
        self._fetched: Fetched | None = None
        self._problem = "failed"
        host = parts.hostname or ""
        if parts.scheme == "https":
            context = _tls_context(config.ca_file)
            self._connection: HTTPConnection = HTTPSConnection(
                host, parts.port, timeout=self._timeout, context=context
            )
        else:
            self._connection = HTTPConnection(host, parts.port, timeout=self._timeout)

    def run(self) -> None:
        try:
            self._connection.connect()
            self._socket = self._connection.sock
            method = "GET" if self._body is None else "POST"
            self._connection.request(method, self._target, self._body, self._headers)
            answer = self._connection.getresponse()
            found = answer.read(MAX_BYTES + 1)
            if len(found) > MAX_BYTES:
                self._problem = f"answered with more than {MAX_BYTES} bytes"
            else:
                self._fetched = Fetched(answer.status, found)
        except ssl.SSLCertVerificationError as error:
            self._problem = f"has no valid certificate: {error.verify_message}"
        except (OSError, HTTPException, UnicodeError) as error:
            self._problem = f"could not be asked: {type(error).__name__}"
        finally:
            self._connection.close()

    def finish(self, *, in_time: bool) -> Fetched:
        """Return the answer; cuts off an exchange that did not end in time. Raises: ProviderUnavailable."""
        if not in_time:
            # Not SSLSocket.shutdown(), which would take the TLS state away from the thread that reads.
            with suppress(OSError):
                if self._socket is not None:
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
            raise ProviderUnavailable(f"gave no complete answer within {self._timeout:g} s")
        if self._fetched is None:
            raise ProviderUnavailable(self._problem)
        if self._fetched.status >= 500:
            raise ProviderUnavailable(f"answered {self._fetched.status}")
        return self._fetched


@cache
def _tls_context(ca_file: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file or certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
