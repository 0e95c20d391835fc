"""A real service on a loopback port, a protected API behind it, and nginx between it and a client."""

import asyncio
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import uvloop
from django.conf import settings
from django.db import connections

from compliance.localdev.ports import HOST, free_port
from compliance.serving.endpoints import ENDPOINTS
from compliance.serving.fast_path import FastPath
from compliance.serving.http.listener import Listener
from compliance.serving.server import Server
from compliance.serving.wsgi import Environ
from compliance.tests.waiting import eventually
from compliance.tests.web import ThreadedDjango
from compliance.wsgi import application
from tenancy.key_lookup import KeyLookup

NGINX = "/usr/sbin/nginx"
WAIT_SECONDS = 60.0
NAME = "api.example"


class CountingSocket(socket.socket):
    """A listening socket; `taken` counts the connections that it has accepted."""

    taken = 0

    def accept(self) -> tuple[socket.socket, Any]:
        found = super().accept()
        self.taken += 1
        return found


@dataclass
class RunningService:
    """The service's own server; `seen_by_view` counts what its fast path left to the views."""

    listening: CountingSocket
    seen_by_view: int = 0
    stop: Event = field(default_factory=Event)

    @property
    def port(self) -> int:
        found: int = self.listening.getsockname()[1]
        return found

    def views(self, environ: Environ, start_response: Callable[..., Any]) -> Any:
        self.seen_by_view += 1
        try:
            return application(environ, start_response)
        finally:
            connections.close_all()


@contextmanager
def running_service() -> Iterator[RunningService]:
    """The service with its fast path; setting `stop` ends it early."""
    listening = CountingSocket(fileno=socket.create_server((HOST, 0)).detach())
    service, is_ready = RunningService(listening), Event()

    async def live() -> None:
        views = ThreadedDjango(service.views, threads=2)
        server = Server(views, fast_path=FastPath(ENDPOINTS, KeyLookup()))
        listener = Listener([listening], server.answer, largest_body=1024)
        listener.start()
        is_ready.set()
        await asyncio.get_running_loop().run_in_executor(None, service.stop.wait)
        await listener.stop(within=1)
        await server.close()
        listening.close()

    thread = Thread(target=lambda: _run(live))
    thread.start()
    try:
        assert is_ready.wait(WAIT_SECONDS)
        yield service
    finally:
        service.stop.set()
        thread.join(WAIT_SECONDS)


def _run(live: Callable[[], Any]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live())


@dataclass
class ProtectedApi:
    """The API behind the gateway: the requests it has seen."""

    port: int = 0
    seen: list[tuple[str, str, list[tuple[str, str]], bytes]] = field(default_factory=list)

    @property
    def last(self) -> dict[str, str]:
        """The headers of the last request, by lower-case name; each stood there once."""
        headers = [(name.lower(), value) for name, value in self.seen[-1][2]]
        assert len(dict(headers)) == len(headers), headers
        return dict(headers)


@contextmanager
def protected_api() -> Iterator[ProtectedApi]:
    api = ProtectedApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            api.seen.append((self.command, self.path, self.headers.items(), body))
            if self.headers.get("Upgrade") == "websocket" and self.headers.get("Connection") == "upgrade":
                self.wfile.write(b"HTTP/1.1 101 A\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
                self.wfile.write(self.rfile.read(4))
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        do_GET = do_POST = do_DELETE = answer  # noqa: N815  (names of the base class)

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer((HOST, 0), Handler) as server:
        server.daemon_threads = True
        api.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield api
        finally:
            server.shutdown()
            thread.join(WAIT_SECONDS)


@dataclass
class Reply:
    """What nginx answered."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value for one, value in self.headers if one.lower() == name.lower()]
        assert len(found) <= 1, self.headers
        return found[0] if found else None


@dataclass
class Nginx:
    """A running nginx."""

    port: int

    def ask(
        self, path: str = "/orders/7", *, method: str = "GET", body: bytes = b"", **headers: Any
    ) -> Reply:
        named = {"Host": NAME, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.ask_exactly(method, path, list(named.items()), body)

    def ask_exactly(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes = b"") -> Reply:
        """With these headers, which may stand there twice or have underscores."""
        with closing(HTTPConnection(HOST, self.port, timeout=WAIT_SECONDS)) as client:
            client.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                client.putheader(name, value.encode("latin-1"))
            client.putheader("Content-Length", str(len(body)))
            client.endheaders(body)
            answer = client.getresponse()
            return Reply(answer.status, answer.getheaders(), answer.read())


@contextmanager
def running_nginx(
    folder: Path, *, service: int, api: int, key: str, changed: Mapping[str, str] = {}
) -> Iterator[Nginx]:
    """nginx with the documented configuration, its addresses and key replaced, and what is `changed`."""
    port = free_port()
    text = (settings.BASE_DIR / "docs/gateway/nginx.conf").read_text()
    for before, after in {
        "127.0.0.1:8000": f"{HOST}:{service}",
        "127.0.0.1:9000": f"{HOST}:{api}",
        "127.0.0.1:8080": f"{HOST}:{port}",
        "service.example": "testserver",
        "worker_processes auto;": "worker_processes 1;\ndaemon off;\n" + _user(),
        "access_log off;": "access_log off;\n" + _temporary(folder),
        **changed,
    }.items():
        assert before in text, before
        text = text.replace(before, after)
    (folder / "nginx.conf").write_text(text)
    (folder / "gateway-key.conf").write_text(f'map "" $gateway_key {{ default "{key}"; }}\n')
    command = [NGINX, "-p", str(folder), "-e", "error.log", "-c", "nginx.conf"]
    checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(command)
    try:
        assert eventually(lambda: _listens(port)), (folder / "error.log").read_text()
        yield Nginx(port)
    finally:
        process.terminate()
        process.wait(WAIT_SECONDS)


def _user() -> str:
    """Workers of a root's nginx stay root here, as the folder is root's."""
    return "user root;\n" if Path("/proc/self").stat().st_uid == 0 else ""


def _temporary(folder: Path) -> str:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return "".join(f"    {kind}_temp_path {folder}/{kind};\n" for kind in kinds)


def _listens(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
