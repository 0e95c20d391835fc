"""Octets sent over one TLS connection to a receiver that answers nothing, such as a syslog server."""

import socket
import ssl
import time
from contextlib import suppress

from compliance.outbound.addresses import Target, UrlRefused, check_url, permitted
from compliance.outbound.http_client import RequestOptions, tls_context


def send_over_tls(receiver: str, octets: bytes, *, options: RequestOptions) -> str:
    """Send to `<host>:<port>`, close, and wait until it has closed; return why it may lack some, or nothing.

    A receiver closes once it has read to our close_notify. One that dies before resets the connection, or
    says nothing.
    """
    until = time.monotonic() + options.timeout_seconds
    try:
        target, context = check_url(f"https://{receiver}", options.policy), tls_context(options.ca_file)
        with (
            _connected(target, options) as plain,
            context.wrap_socket(plain, server_hostname=target.host) as secure,
        ):
            secure.settimeout(max(until - time.monotonic(), 0.001))
            secure.sendall(octets)
            secure.settimeout(max(until - time.monotonic(), 0.001))
            # rsyslog ends its stream without a close_notify.
            with suppress(ssl.SSLEOFError):
                secure.unwrap()
    except UrlRefused as error:
        return str(error)
    except ssl.SSLCertVerificationError as error:
        return f"TLS certificate not valid: {error.verify_message}"
    except OSError as error:
        return f"Not sent: {error.strerror or type(error).__name__}"
    return ""


def _connected(target: Target, options: RequestOptions) -> socket.socket:
    """Connect to the first permitted address that answers. Raises: UrlRefused, OSError."""
    *others, last = permitted(options.resolver(target.host, target.port), options.policy)
    for address in others:
        with suppress(OSError):
            return socket.create_connection((str(address), target.port), timeout=options.timeout_seconds)
    return socket.create_connection((str(last), target.port), timeout=options.timeout_seconds)
