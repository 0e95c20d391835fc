"""`/metrics` of processes without other HTTP, at METRICS_LISTEN: workers, senders, beat, key hosts."""

import ipaddress
import logging
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from django.conf import settings

from compliance.observing import exposition, metrics

log = logging.getLogger(__name__)

PATH: Final = "/metrics"
READ_SECONDS: Final = 5.0


def address() -> tuple[str, int] | None:
    """The host and port of METRICS_LISTEN; None without one. Raises: ValueError."""
    if not settings.METRICS_LISTEN:
        return None
    host, _, port = settings.METRICS_LISTEN.rpartition(":")
    number = int(port)
    if not 0 <= number < 65_536:
        raise ValueError(f"METRICS_LISTEN has the port {number}")
    return str(ipaddress.ip_address(host.strip("[]"))), number


def is_guarded(host: str) -> bool:
    """Whether only those on this machine, or with the token, can read what is served at `host`."""
    return ipaddress.ip_address(host).is_loopback or bool(settings.METRICS_TOKEN)


def start() -> "ThreadingHTTPServer | None":
    """Serve from a thread of this process; None, and a log line, where it is not to be or cannot."""
    try:
        found = address()
    except ValueError as error:
        log.error("METRICS_LISTEN is no address and port: %s", error)
        return None
    if found is None or not metrics.is_shared:
        return None
    if not is_guarded(found[0]):
        log.error("metrics are not served at %s without METRICS_TOKEN", found[0])
        return None
    try:
        server = _MetricsServer(found)
    except OSError as error:
        log.warning("metrics are not served at %s: %s", settings.METRICS_LISTEN, error.strerror)
        return None
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


class _MetricsServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        is_ipv6 = ipaddress.ip_address(address[0]).version == 6
        self.address_family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
        super().__init__(address, _ScrapeHandler)


class _ScrapeHandler(BaseHTTPRequestHandler):
    timeout = READ_SECONDS
    server_version, sys_version = "metrics", ""

    def do_GET(self) -> None:
        host = self.server.server_address[0] if isinstance(self.server.server_address, tuple) else ""
        if self.path.partition("?")[0] != PATH or not is_guarded(host):
            self._send(404, b"")
        elif settings.METRICS_TOKEN and not exposition.is_authorized(self.headers.get("Authorization", "")):
            self._send(401, b"")
        else:
            self._send(200, exposition.exposed())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a method that is not served, or a malformed request, with nothing of it in the answer."""
        self._send(code, b"")

    def log_message(self, *args: Any) -> None:
        """Say nothing: what clients send may hold the token."""

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", exposition.CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True
