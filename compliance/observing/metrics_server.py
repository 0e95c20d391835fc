"""`/metrics` of processes without other HTTP, at METRICS_LISTEN: workers, senders, beat, key hosts."""

import hmac
import ipaddress
import logging
import socket
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from django.conf import settings
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from compliance.observing import metrics

log = logging.getLogger(__name__)

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PATH: Final = "/metrics"
READ_SECONDS: Final = 5.0


def is_authorized(header: str) -> bool:
    """Return whether an `Authorization` header presents METRICS_TOKEN; nothing does where there is none."""
    expected: str = settings.METRICS_TOKEN
    scheme, _, sent = header.partition(" ")
    is_bearer = scheme.lower() == "bearer" and bool(expected)
    return is_bearer and hmac.compare_digest(sent.strip().encode("utf-8", "replace"), expected.encode())


def exposed(more: Iterable[Collector] = ()) -> bytes:
    """The metrics as text; `more` are collected now."""
    found = CollectorRegistry()
    if metrics.is_shared:
        MultiProcessCollector(found, path=metrics.folder)  # type: ignore[no-untyped-call]
    else:
        found.register(metrics.registry)
    for collector in more:
        found.register(collector)
    return generate_latest(found)


def address() -> tuple[str, int] | None:
    """The host and port of METRICS_LISTEN; None without one. Raises: ValueError."""
    if not settings.METRICS_LISTEN:
        return None
    host, _, port = settings.METRICS_LISTEN.rpartition(":")
    number = int(port)
    if not 0 <= number < 65_536:
        raise ValueError(f"METRICS_LISTEN has the port {number}")
    return str(ipaddress.ip_address(host.strip("[]"))), number


def start() -> "ThreadingHTTPServer | None":
    """Serve from a thread of this process; None, and a log line, where it is not to be or cannot."""
    try:
        found = address()
        if found is None or not metrics.is_shared:
            return None
        if not ipaddress.ip_address(found[0]).is_loopback and not settings.METRICS_TOKEN:
            log.error("metrics are not served at %s without METRICS_TOKEN", settings.METRICS_LISTEN)
            return None
        server = _MetricsServer(found, _ScrapeHandler)
    except (ValueError, OSError) as error:
        log.error("metrics are not served at %s: %s", settings.METRICS_LISTEN, error)
        return None
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


class _MetricsServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)


class _ScrapeHandler(BaseHTTPRequestHandler):
    timeout = READ_SECONDS
    server_version, sys_version = "metrics", ""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != PATH:
            self.send_error(404)
        elif settings.METRICS_TOKEN and not is_authorized(self.headers.get("Authorization", "")):
            self.send_error(401)
        else:
            self._send(200, exposed())

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse a request with nothing of it in the answer."""
        self._send(code, b"")

    def log_message(self, *args: Any) -> None:
        """Say nothing: what clients send may hold the token."""

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True
