"""Keeps web, worker, sender, beat and key hosts up until it is told to stop; one process for each stack.

It does not restart the data servers: they are dependencies, and stopping one is how a drill begins.
"""

import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType

from . import processes
from .layout import Layout
from .parts import MARK, commands, mark
from .ports import port_of
from .processes import Record, send, wait_until
from .servers import Servers
from .state import locked, write_json

BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_SECONDS = 60.0
POLL_SECONDS = 0.2
STOP_SECONDS = 10.0
HOSTS_PAUSE_SECONDS = 1.0
LOGS_PAUSE_SECONDS = 1.0


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
        """Seconds to wait before the next start; longer after each failure in a row."""
        return BACKOFF_SECONDS[min(self.failures, len(BACKOFF_SECONDS) - 1)]


@dataclass
class Supervisor:
    """The loop over the parts. `parent`: stop when this process is no longer our parent (None: never).

    `listener`: the web server's socket, held here too, so that the port stays ours while it is down.
    """

    layout: Layout
    listener: socket.socket
    parent: int | None = None
    stopping: bool = False
    parts: list[Part] = field(default_factory=list)
    hosts_due: float = 0.0
    logs_due: float = 0.0

    @cached_property
    def servers(self) -> Servers:
        return Servers(self.layout)

    def run(self) -> int:
        """Serve until SIGTERM, SIGINT or the parent's end; then stop all, the data servers if unused."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        listener = self.listener.fileno()
        found = commands(f"fd://{listener}", os.environ, local=self.layout.local)
        fds = {"web": (listener,)}
        self.parts = [Part(name, command, fds.get(name, ())) for name, command in found.items()]
        with locked(self.layout.users_lock, shared=True):
            clear_leftovers(self.layout)
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
        announced = False
        while not self.stopping and not self._orphaned():
            changed = [self._tend(part, time.monotonic()) for part in self.parts]
            if any(changed):
                self._note()
            self._tend_key_hosts(time.monotonic())
            self._tend_logs(time.monotonic())
            if not announced:
                self._announce()
                announced = True
            time.sleep(POLL_SECONDS)

    def _orphaned(self) -> bool:
        return self.parent is not None and os.getppid() != self.parent

    def _announce(self) -> None:
        """Say that the stack is ours; whoever started us waits for this."""
        own = processes.record(os.getpid())
        if own is not None:
            processes.save(self.layout.supervisor, own)

    def _tend(self, part: Part, now: float) -> bool:
        """Start `part` when it is down and its pause is over; whether anything changed."""
        if part.process is not None:
            if part.process.poll() is None:
                return False
            self._log(f"{part.name} (pid {part.process.pid}) ended with {part.process.returncode}")
            steady = now - part.started > STEADY_SECONDS
            part.due = now + (BACKOFF_SECONDS[0] if steady else part.pause())
            part.failures = 1 if steady else part.failures + 1
            # Its own children (web workers) may have outlived it and would go on accepting.
            send(part.process.pid, signal.SIGKILL, group=True)
            part.process = None
            return True
        if now < part.due:
            return False
        environment = os.environ | {MARK: str(self.layout.local)}
        log = self.layout.log / f"{part.name}.log"
        part.process = processes.spawn(
            part.command, log=log, env=environment, cwd=self.layout.root, pass_fds=part.pass_fds
        )
        part.started = now
        return True

    def _tend_key_hosts(self, now: float) -> None:
        """Start their keeper anew when it died; they run already when the parts are started."""
        hosts = self.servers.key_hosts
        if not hosts.count or now < self.hosts_due or hosts.running() is not None:
            return
        self.hosts_due = now + HOSTS_PAUSE_SECONDS
        self._log("the key hosts are down and are started again")
        self.servers.start_key_hosts(wait=False)

    def _tend_logs(self, now: float) -> None:
        """Keep every log of the stack from growing without end."""
        if now < self.logs_due:
            return
        self.logs_due = now + LOGS_PAUSE_SECONDS
        for log in self.layout.log.glob("*.log"):
            if not log.name.endswith(processes.OLD_LOG):
                processes.set_aside(log)

    def _note(self) -> None:
        pids = {part.name: part.process.pid for part in self.parts if part.process is not None}
        restarts = {part.name: part.failures for part in self.parts}
        write_json(self.layout.parts, {"port": port_of(self.listener), "pids": pids, "restarts": restarts})

    def _end_parts(self) -> None:
        """Ask each part to finish, the last started first, and end what has not within the time."""
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
    """End the parts that a killed supervisor left behind; found by their mark, never by a stale pid."""
    marker = mark(layout.local)
    for number in (signal.SIGTERM, signal.SIGKILL):
        pids = list(processes.marked(marker))
        for pid in pids:
            send(pid, number)
        if wait_until(lambda: not any(processes.marked(marker)), seconds=3 if pids else 0):
            return


def running_supervisor(layout: Layout) -> Record | None:
    """The supervisor of this checkout's stack, if it runs."""
    return processes.load(layout.supervisor)
