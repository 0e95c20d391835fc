"""The programs of the cluster, and a keeper that restarts them as systemd does."""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from compliance.localdev.servers import processes
from compliance.localdev.servers.redis import RedisServer
from compliance.tests.waiting import Record, is_alive, record

RESTART_SECONDS = 0.1
POLL_SECONDS = 0.1
STOP_SECONDS = 15.0
MARK = "SERVICE_CLUSTER"
"""The variable by which members are recognised; it holds the cluster's folder and the member's name."""


class Member(Protocol):
    """A part of the cluster that is kept up."""

    @property
    def name(self) -> str: ...

    def is_alive(self) -> bool: ...

    def start(self) -> None: ...

    def kill(self) -> None:
        """End the part with all its processes, as a crash does."""


@dataclass
class ValkeyServer:
    """The Valkey behind REDIS_URL."""

    server: RedisServer
    name: str = "valkey"

    def is_alive(self) -> bool:
        return self.server.running() is not None

    def start(self) -> None:
        self.server.start()

    def kill(self) -> None:
        self.server.stop(((signal.SIGKILL, 10.0),))


@dataclass
class Program:
    """One program with its process group; `works_in` names a folder whose processes are its own too.

    `environment` may be changed between two starts.
    """

    name: str
    command: Sequence[str]
    environment: dict[str, str]
    folder: Path
    log: Path
    works_in: Path | None = None
    before: Callable[[], None] = lambda: None
    process: Record | None = None

    def is_alive(self) -> bool:
        return self.process is not None and is_alive(self.process)

    def start(self) -> None:
        self.before()
        environment = self.environment | {MARK: mark_of(self.folder, self.name)}
        child = processes.spawn(self.command, log=self.log, env=environment, cwd=self.folder)
        # Its end is seen by the record; a thread collects the zombie.
        threading.Thread(target=child.wait, daemon=True).start()
        self.process = record(child.pid)

    def kill(self) -> None:
        """Kill the group first, so that nobody is left to restart what is killed after it."""
        self._send(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order, and kill what is left."""
        if self.process is not None and self.is_alive():
            processes.send(self.process.pid, signal.SIGTERM)
            processes.wait_until(lambda: not self.is_alive(), seconds=STOP_SECONDS)
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self.process is not None:
            with suppress(PermissionError):
                processes.send(self.process.pid, number, group=True)
        for pid in processes.marked(f"{MARK}={mark_of(self.folder, self.name)}"):
            processes.send(pid, number)
        for pid in processes.in_folder(self.works_in) if self.works_in else ():
            processes.send(pid, number)


def mark_of(folder: Path, name: str) -> str:
    """Return the mark of a member."""
    return f"{folder}:{name}"


@dataclass
class Keeper:
    """Starts each member that has ended, `RESTART_SECONDS` later, except those held down."""

    members: list[Member] = field(default_factory=list)
    held: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _keep(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            dead = [one for one in self.members if one.name not in self.held and not one.is_alive()]
            if dead and not self._stopping.wait(RESTART_SECONDS):
                for one in dead:
                    if one.name not in self.held and not one.is_alive():
                        one.start()


def end_leftovers(folder: Path) -> None:
    """Kill the members of a cluster in `folder` whose keeper was killed."""
    wanted = os.fsencode(f"{MARK}={folder}:")
    for entry in processes.PROC.glob("[0-9]*/environ"):
        with suppress(OSError):
            if any(value.startswith(wanted) for value in entry.read_bytes().split(b"\0")):
                processes.send(int(entry.parent.name), signal.SIGKILL)
