"""Web servers that a benchmark starts for itself: the service as `./run` starts it, and the rulers."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType

from bench.harness import machine
from bench.harness.place import Place
from bench.harness.pooler import pooled
from compliance.localdev.console import StepFailed
from compliance.localdev.parts import commands
from compliance.localdev.ports import HOST, free_port
from compliance.localdev.servers import processes

MARK = "SERVICE_BENCH"
METRICS_TOKEN = "token-of-the-benchmarks"
READY_SECONDS = 60.0
STOP_SECONDS = 10.0
SCRAPE_SECONDS = 30.0


@dataclass
class WebServer:
    """A running server and its worker processes."""

    name: str
    port: int
    process: subprocess.Popen[bytes]

    def workers(self) -> list[int]:
        """The processes that answer requests; the server's own where it has none besides."""
        found = [
            pid
            for pid in machine.children(self.process.pid)
            if "resource_tracker" not in machine.command_of(pid)
        ]
        return found or [self.process.pid]

    def views(self) -> list[int]:
        """The processes beside the service's event loops, which answer what those do not."""
        return [child for worker in self.workers() for child in machine.children(worker)]

    def stop(self) -> None:
        """End it, and whatever it left of its process group."""
        if self.process.poll() is None:
            processes.send(self.process.pid, signal.SIGTERM)
            processes.wait_until(lambda: self.process.poll() is not None, seconds=STOP_SECONDS)
        processes.send(self.process.pid, signal.SIGKILL, group=True)
        self.process.wait()


@contextmanager
def service(
    place: Place, *, name: str = "service", settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[WebServer]:
    """The service on the benchmark's databases, with the command and the settings of `./run`, or these."""
    with _service(name, place, more=settings) as server:
        yield server


@contextmanager
def observed(place: Place, *, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[WebServer]:
    """The service with metrics in files that all its processes share, as it is deployed."""
    folder = place.folder / "metrics"
    shutil.rmtree(folder, ignore_errors=True)
    more = {"METRICS_DIR": str(folder), "METRICS_TOKEN": METRICS_TOKEN, "LOG_FORMAT": "json", **settings}
    with _service("observed", place, more=more) as server:
        yield server


def metrics_of(server: WebServer) -> str:
    """Return what an observed service answers Prometheus. Raises StepFailed."""
    headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    with closing(HTTPConnection(HOST, server.port, timeout=SCRAPE_SECONDS)) as connection:
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        body = answer.read().decode()
    if answer.status != 200:
        raise StepFailed(
            f"/metrics answered {answer.status}", hint=f"read .local/log/bench-{server.name}.log"
        )
    return body


@contextmanager
def unobserved(place: Place) -> Iterator[WebServer]:
    """The service without metrics, ids and log lines."""
    with _service("unobserved", place, program="bench.rulers.unobserved") as server:
        yield server


@contextmanager
def _service(
    name: str, place: Place, *, more: Mapping[str, str] = MappingProxyType({}), program: str = "gunicorn"
) -> Iterator[WebServer]:
    port = free_port()
    settings = {**place.environment(), "BASE_URL": f"http://{HOST}:{port}", **more}
    with pooled(place, settings) as environment:
        command = commands(f"{HOST}:{port}", environment)["web"]
        command[command.index("gunicorn")] = program
        with running(name, command, environment, place, port=port, path="/health/ready") as server:
            yield server


@contextmanager
def fastapi(place: Place, *, pool: int) -> Iterator[WebServer]:
    """FastAPI and asyncpg with `pool` connections for each of as many workers as the service has."""
    port = free_port()
    environment = place.environment() | {
        "DATABASE_URL": place.live_url,
        "POOL_SIZE": str(pool),
        "RULER_TENANT": place.tenant_id,
    }
    python = str(place.servers.layout.bench_venv / "bin/python")
    command = [
        *(python, "-m", "uvicorn", "bench.rulers.fastapi_app:app", "--host", HOST, "--port", str(port)),
        *("--workers", environment["WEB_WORKERS"], "--loop", "uvloop", "--http", "httptools"),
        *("--no-access-log", "--log-level", "warning"),
    ]
    with running("fastapi", command, environment, place, port=port, path="/") as server:
        yield server


@contextmanager
def fastapi_trust(place: Place, *, jwks: object, issuer: str) -> Iterator[WebServer]:
    """FastAPI and PyJWT with the service's public keys, as many workers as the service has."""
    port = free_port()
    environment = place.environment() | {"RULER_JWKS": json.dumps(jwks), "RULER_ISSUER": issuer}
    python = str(place.servers.layout.bench_venv / "bin/python")
    command = [
        *(python, "-m", "uvicorn", "bench.rulers.fastapi_trust:app", "--host", HOST, "--port", str(port)),
        *("--workers", environment["WEB_WORKERS"], "--loop", "uvloop", "--http", "httptools"),
        *("--no-access-log", "--log-level", "warning"),
    ]
    with running("fastapi-trust", command, environment, place, port=port, path="/") as server:
        yield server


@contextmanager
def plain_drf(place: Place) -> Iterator[WebServer]:
    """Django REST framework as its tutorial has it, with as many workers and threads as the service."""
    port = free_port()
    environment = place.environment() | {
        "DATABASE_URL": place.live_url,
        "DJANGO_SETTINGS_MODULE": "bench.rulers.plain.settings",
        "RULER_TENANT": place.tenant_id,
    }
    command = plain_drf_command(port, workers=environment["WEB_WORKERS"], threads=environment["WEB_THREADS"])
    with running("plain-drf", command, environment, place, port=port, path="/") as server:
        yield server


def plain_drf_command(port: int, *, workers: str, threads: str) -> list[str]:
    """Django REST framework in the threads of gunicorn; connections are kept, as the service keeps them."""
    return [
        *(sys.executable, "-m", "gunicorn", "--bind", f"{HOST}:{port}", "--workers", workers),
        *("--worker-class", "gthread", "--threads", threads, "--keep-alive", "60", "--preload"),
        "--no-control-socket",
        "bench.rulers.plain.wsgi:application",
    ]


@contextmanager
def nothing(place: Place) -> Iterator[WebServer]:
    """A server that only answers: what remains is the load generator's own cost."""
    port = free_port()
    command = [sys.executable, "-m", "bench.rulers.echo", str(port)]
    with running("echo", command, place.environment(), place, port=port, path="/") as server:
        yield server


def clear_leftovers(place: Place) -> None:
    """End servers of a benchmark that was killed; found by their mark in the environment."""
    for pid in list(processes.marked(_mark(place))):
        processes.send(pid, signal.SIGKILL)


def _mark(place: Place) -> str:
    return f"{MARK}={place.servers.layout.local}"


def part(name: str, place: Place, *, port: int) -> list[str]:
    """The command with which `./run` starts one of the service's programs."""
    return commands(f"{HOST}:{port}", place.environment())[name]


@contextmanager
def running(
    name: str, command: Sequence[str], environment: Mapping[str, str], place: Place, *, port: int, path: str
) -> Iterator[WebServer]:
    """A server that answers on its port."""
    with started(name, command, environment, place) as process:
        server = WebServer(name, port, process)
        _wait_ready(server, path, place.servers.layout.log / f"bench-{name}.log")
        yield server


@contextmanager
def started(
    name: str, command: Sequence[str], environment: Mapping[str, str], place: Place
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with the block."""
    mark, _, value = _mark(place).partition("=")
    log = place.servers.layout.log / f"bench-{name}.log"
    process = processes.spawn(
        command, log=log, env={**environment, mark: value}, cwd=place.servers.layout.root
    )
    try:
        yield process
    finally:
        WebServer(name, 0, process).stop()


def _wait_ready(server: WebServer, path: str, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and server.process.poll() is None:
        if answers(server.port, path):
            return
        time.sleep(0.1)
    raise StepFailed(f"the {server.name} server did not start", hint=f"read {os.fspath(log)}")


def answers(port: int, path: str) -> bool:
    """Whether the server answers, be it with 404, but not with 5xx."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False
