"""The supervisor: one process for each stack that keeps web, worker, sender and beat up.

It does not restart the data servers: they are dependencies, and a drill begins by stopping one.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType

from ..layout import Layout
from ..parts import MARK, commands
from ..ports import port_of
from ..state import locked, write_json
from . import processes
from .processes import Record, send, wait_until
from .servers import Servers

BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_SECONDS = 10.0
"""A part that ran for longer did not fail at its start, and is started again at once."""
POLL_SECONDS = 0.5
STOP_SECONDS = 10.0
CHORES_SECONDS = 1.0


@dataclass
class Part:
    """One supervised program; times are `time.monotonic()` seconds."""

    name: str
    command: list[str]
    pass_fds: tuple[int, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    failures: int = 0
    due: float = 0.0

    def pause(self) -> float:
        """Return the seconds until the next start; more after each failure in a row."""
        return BACKOFF_SECONDS[min(self.failures, len(BACKOFF_SECONDS) - 1)]

    def note_end(self, now: float) -> None:
        """Schedule the next start of a part that has ended."""
        if now - self.started > STEADY_SECONDS:
            self.failures = 0
        self.due = now + self.pause()
        self.failures += 1
        self.process = None


@dataclass
class Supervisor:
    """The loop over the parts. It stops when `parent` (None: none) is no longer its parent process.

    It holds the web server's socket, `listener`, too: the port stays ours while the web server is down.
    """

    layout: Layout
    listener: socket.socket
    parent: int | None = None
    stopping: bool = False
    parts: list[Part] = field(default_factory=list)
    chores_due: float = 0.0

    @cached_property
    def servers(self) -> Servers:
        return Servers(self.layout)

    def run(self) -> int:
        """Serve until SIGTERM, SIGINT or the parent's end; then stop all, and unused data servers too."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        fd = self.listener.fileno()
        found = commands(f"fd://{fd}", os.environ)
        self.parts = [Part(name, command, (fd,) if name == "web" else ()) for name, command in found.items()]
        self.layout.supervisor.unlink(missing_ok=True)
        with locked(self.layout.users_lock, shared=True):
            clear_leftovers(self.layout)
            shutil.rmtree(self.layout.metrics, ignore_errors=True)
            self._watch()
            self.listener.close()
            self._end_parts()
        self.servers.stop_if_unused()
        self.layout.parts.unlink(missing_ok=True)
        self.layout.supervisor.unlink(missing_ok=True)
        return 0

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def _watch(self) -> None:
        while not self.stopping and (self.parent is None or os.getppid() == self.parent):
            now = time.monotonic()
            changed = [self._tend(part, now) for part in self.parts]
            if any(changed):
                self._write_state()
            if now >= self.chores_due:
                self.chores_due = now + CHORES_SECONDS
                bound_logs(self.layout)
            if not self.layout.supervisor.exists():
                processes.save(self.layout.supervisor, os.getpid())
            time.sleep(POLL_SECONDS)

    def _tend(self, part: Part, now: float) -> bool:
        if part.process is None:
            return now >= part.due and self._start(part, now)
        if part.process.poll() is None:
            return False
        self._log(f"{part.name} (pid {part.process.pid}) ended with {part.process.returncode}")
        # Its children (web workers) may have outlived it, and would go on accepting.
        send(part.process.pid, signal.SIGKILL, group=True)
        part.note_end(now)
        return True

    def _start(self, part: Part, now: float) -> bool:
        log, environment = (
            self.layout.log / f"{part.name}.log",
            {
                **os.environ,
                MARK: str(self.layout.local),
                "METRICS_DIR": str(self.layout.metrics),
            },
        )
        part.process = processes.spawn(
            part.command, log=log, env=environment, cwd=self.layout.root, pass_fds=part.pass_fds
        )
        part.started = now
        return True

    def _write_state(self) -> None:
        pids = {part.name: part.process.pid for part in self.parts if part.process is not None}
        write_json(self.layout.parts, {"port": port_of(self.listener), "pids": pids})

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

    @staticmethod
    def _log(text: str) -> None:
        os.write(2, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n".encode())


def clear_leftovers(layout: Layout) -> None:
    """End the parts that a killed supervisor left; they are found by their mark, never by a stale pid."""
    marker = f"{MARK}={layout.local}"
    for number in (signal.SIGTERM, signal.SIGKILL):
        pids = list(processes.marked(marker))
        for pid in pids:
            send(pid, number)
        if wait_until(lambda: not any(processes.marked(marker)), seconds=3 if pids else 0):
            return


def bound_logs(layout: Layout) -> None:
    """Set aside each log of the stack that has grown too large."""
    for log in layout.log.glob("*.log"):
        if not log.name.endswith(processes.OLD_LOG):
            processes.set_aside(log)


def running_supervisor(layout: Layout) -> Record | None:
    """Return the supervisor of this checkout's stack if it runs."""
    return processes.load(layout.supervisor)
