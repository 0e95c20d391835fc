"""The supervisor: one process for each stack that keeps web, worker, senders and beat up.

It does not restart the data servers: they are dependencies, and a drill begins by stopping one.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType

from ..layout import ROOT, Layout
from ..ports import port_of
from ..state import locked, write_json
from . import processes
from .processes import Record, send, wait_until
from .servers import Servers

MARK = "SERVICE_STACK"
"""The variable by which the parts and their children are recognised; it holds the stack's private folder."""
THREADS = {"worker": 12, "urgent": 4}
RESTART_SECONDS = 1.0
POLL_SECONDS = 0.5
STOP_SECONDS = 10.0


def commands(bind: str, environ: Mapping[str, str]) -> dict[str, list[str]]:
    """Return each part's command, in the order of their start; `bind` is where the web server accepts."""
    python = sys.executable
    celery = [python, "-m", "celery", "-A", "compliance.celery"]

    def worker(name: str, queue: str) -> list[str]:
        return [
            *(*celery, "worker", "-Q", queue, "--pool", "threads", "--concurrency", str(THREADS[name])),
            *("--without-gossip", "--without-heartbeat", "--without-mingle", "--loglevel", "INFO"),
        ]

    return {
        "web": [
            *(python, "-m", "gunicorn", "--config", "python:compliance.serving.config"),
            *("--bind", bind, "--workers", environ["WEB_WORKERS"]),
            "compliance.serving.application:application",
        ],
        "worker": worker("worker", "celery"),
        "urgent": worker("urgent", "urgent"),
        "sender": [python, str(ROOT / "manage.py"), "webhook_sender"],
        "signals": [python, str(ROOT / "manage.py"), "signal_sender"],
        "beat": [*celery, "beat", "--pidfile", "", "--loglevel", "INFO"],
    }


@dataclass
class Part:
    """One supervised program, next started at `due` (`time.monotonic()` seconds)."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    due: float = 0.0


@dataclass
class Supervisor:
    """The loop over the parts.

    It holds the web server's socket, `listener`, too: the port stays ours while the web server is down.
    """

    layout: Layout
    listener: socket.socket
    stopping: bool = False
    parts: list[Part] = field(default_factory=list)

    def run(self) -> int:
        """Serve until SIGTERM or SIGINT; then stop all, and unused data servers too."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        found = commands(f"fd://{self.listener.fileno()}", os.environ)
        self.parts = [Part(name, command) for name, command in found.items()]
        self.layout.supervisor.unlink(missing_ok=True)
        with locked(self.layout.users_lock, shared=True):
            clear_leftovers(self.layout)
            shutil.rmtree(self.layout.metrics, ignore_errors=True)
            while not self.stopping:
                self._tend_parts()
                if not self.layout.supervisor.exists():
                    processes.save(self.layout.supervisor, os.getpid())
                time.sleep(POLL_SECONDS)
            self.listener.close()
            self._end_parts()
        Servers(self.layout).stop_if_unused()
        self.layout.parts.unlink(missing_ok=True)
        self.layout.supervisor.unlink(missing_ok=True)
        return 0

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def _tend_parts(self) -> None:
        """Note the parts that have ended, start those that are due, and write down which run."""
        now, before = time.monotonic(), [part.process for part in self.parts]
        for part in self.parts:
            if part.process is None and now >= part.due:
                part.process = self._spawn(part)
            elif part.process is not None and part.process.poll() is not None:
                moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                ended = f"{part.name} (pid {part.process.pid}) ended with {part.process.returncode}"
                os.write(2, f"{moment} {ended}\n".encode())
                # Its children (web workers) may have outlived it, and would go on accepting.
                send(part.process.pid, signal.SIGKILL, group=True)
                part.process, part.due = None, now + RESTART_SECONDS
        if before != [part.process for part in self.parts]:
            pids = {part.name: part.process.pid for part in self.parts if part.process is not None}
            write_json(self.layout.parts, {"port": port_of(self.listener), "pids": pids})

    def _spawn(self, part: Part) -> subprocess.Popen[bytes]:
        own = {MARK: str(self.layout.local), "METRICS_DIR": str(self.layout.metrics)}
        return processes.spawn(
            part.command,
            log=self.layout.log / f"{part.name}.log",
            env={**os.environ, **own},
            cwd=self.layout.root,
            pass_fds=[self.listener.fileno()] if part.name == "web" else [],
        )

    def _end_parts(self) -> None:
        """Send SIGTERM to each part, the last started first, and kill what is left after `STOP_SECONDS`."""
        running = [part.process for part in reversed(self.parts) if part.process is not None]
        for process in running:
            send(process.pid, signal.SIGTERM)
        wait_until(lambda: all(process.poll() is not None for process in running), seconds=STOP_SECONDS)
        for process in running:
            send(process.pid, signal.SIGKILL, group=True)
            process.wait()
        clear_leftovers(self.layout)


def clear_leftovers(layout: Layout) -> None:
    """End the parts that a killed supervisor left; they are found by their mark, never by a stale pid."""
    marker = f"{MARK}={layout.local}"
    for number in (signal.SIGTERM, signal.SIGKILL):
        pids = list(processes.marked(marker))
        for pid in pids:
            send(pid, number)
        if wait_until(lambda: not any(processes.marked(marker)), seconds=3 if pids else 0):
            return


def running_supervisor(layout: Layout) -> Record | None:
    """Return the supervisor of this checkout's stack if it runs."""
    return processes.load(layout.supervisor)
