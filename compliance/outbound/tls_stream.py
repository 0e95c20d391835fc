"""Octets sent over one TLS connection to a receiver that answers nothing, such as a syslog server."""

import socket
import ssl
import time
from contextlib import suppress

from compliance.outbound.addresses import UrlRefused, permitted
from compliance.outbound.http_client import RequestOptions, tls_context


def send_over_tls(host: str, port: int, octets: bytes, *, options: RequestOptions) -> str:
    """Send, close, and wait until the receiver has closed too; return why it may lack some, or nothing.

    A receiver closes once it has read to our close_notify. One that dies before resets the connection, or
    says nothing.
    """
    until = time.monotonic() + options.timeout_seconds
    try:
        context, plain = tls_context(options.ca_file), _connected(host, port, options)
        with plain, context.wrap_socket(plain, server_hostname=host) as secure:
            secure.settimeout(max(until - time.monotonic(), 0.001))
            secure.sendall(octets)
            secure.settimeout(max(until - time.monotonic(), 0.001))
            _close(secure)
    except UrlRefused as error:
        return str(error)
    except ssl.SSLCertVerificationError as error:
        return f"TLS certificate not valid: {error.verify_message}"
    except OSError as error:
        return f"Not sent: {error.strerror or type(error).__name__}"
    return ""


def _connected(host: str, port: int, options: RequestOptions) -> socket.socket:
    """Connect to the first permitted address that answers. Raises: UrlRefused, OSError."""
    *others, last = permitted(options.resolver(host, port), options.policy)
    for address in others:
        with suppress(OSError):
            return socket.create_connection((str(address), port), timeout=options.timeout_seconds)
    return socket.create_connection((str(last), port), timeout=options.timeout_seconds)


def _close(secure: ssl.SSLSocket) -> None:
    """Wait for the receiver's close_notify, or for the end of its stream, by which rsyslog closes."""
    try:
        secure.unwrap()
    except ssl.SSLEOFError:
        return
