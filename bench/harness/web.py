"""Web servers that a benchmark starts for itself: the service as `./run` starts it, and the rulers."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.harness import machine
from bench.harness.place import Place
from compliance.localdev.console import StepFailed
from compliance.localdev.ports import HOST, free_port
from compliance.localdev.servers import processes
from compliance.localdev.servers.supervisor import part_commands

MARK = "SERVICE_BENCH"
READY_SECONDS = 60.0
STOP_SECONDS = 10.0


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

    def stop(self) -> None:
        """End it, and whatever it left of its process group."""
        if self.process.poll() is None:
            processes.send(self.process.pid, signal.SIGTERM)
            processes.wait_until(lambda: self.process.poll() is not None, seconds=STOP_SECONDS)
        processes.send(self.process.pid, signal.SIGKILL, group=True)
        self.process.wait()


@contextmanager
def service(place: Place) -> Iterator[WebServer]:
    """The service on the benchmark's databases, with the command and the settings of `./run`."""
    port = free_port()
    environment = {**place.environment(), "BASE_URL": f"http://{HOST}:{port}"}
    command = part_commands(f"{HOST}:{port}", environment)["web"]
    with running("service", command, environment, place, port=port, path="/health/ready") as server:
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
def plain_django(place: Place) -> Iterator[WebServer]:
    """Plain Django, with as many workers and threads as the service."""
    port = free_port()
    environment = place.environment() | {
        "DATABASE_URL": place.live_url,
        "DJANGO_SETTINGS_MODULE": "bench.rulers.plain.settings",
    }
    command = plain_django_command(
        port, workers=environment["WEB_WORKERS"], threads=environment["WEB_THREADS"]
    )
    with running("plain-django", command, environment, place, port=port, path="/") as server:
        yield server


def plain_django_command(port: int, *, workers: str, threads: str) -> list[str]:
    """Django in the threads of gunicorn; connections are kept, as the service keeps them."""
    return [
        *(sys.executable, "-m", "gunicorn", "--bind", f"{HOST}:{port}", "--keep-alive", "60", "--preload"),
        *("--workers", workers, "--worker-class", "gthread", "--threads", threads, "--no-control-socket"),
        "django.core.wsgi:get_wsgi_application()",
    ]


def clear_leftovers(place: Place) -> None:
    """End servers of a benchmark that was killed; found by their mark in the environment."""
    for pid in list(processes.marked(_mark(place))):
        processes.send(pid, signal.SIGKILL)


def _mark(place: Place) -> str:
    return f"{MARK}={place.servers.layout.local}"


@contextmanager
def running(
    name: str, command: Sequence[str], environment: Mapping[str, str], place: Place, *, port: int, path: str
) -> Iterator[WebServer]:
    """A server that answers on its port, and ends with the block."""
    layout, (mark, _, value) = place.servers.layout, _mark(place).partition("=")
    log = layout.log / f"bench-{name}.log"
    process = processes.spawn(command, log=log, env={**environment, mark: value}, cwd=layout.root)
    server = WebServer(name, port, process)
    try:
        ready = processes.wait_until(
            lambda: process.poll() is not None or answers(port, path), seconds=READY_SECONDS
        )
        if not ready or process.poll() is not None:
            raise StepFailed(f"the {name} server did not start", hint=f"read {os.fspath(log)}")
        yield server
    finally:
        server.stop()


def answers(port: int, path: str) -> bool:
    """Whether the server answers, be it with 404, but not with 5xx."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except (OSError, ValueError):
        return False
