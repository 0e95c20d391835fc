"""The parent of the key hosts: starts them, replaces one that died or hangs, ends them with itself."""

import fcntl
import gc
import logging
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Final

from compliance.errors import Conflict
from compliance.keys.hosts import address
from compliance.keys.hosts.server import Server

logger = logging.getLogger(__name__)

PAUSES: Final = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds before a host is started again; longer after each early death in a row."""
STEADY_SECONDS: Final = 30.0
BEAT_SECONDS: Final = 1.0
SILENCE_SECONDS: Final = 6.0
"""A host that does not send a beat back for so long is ended; one that is starting reads beats, too."""
POLL_SECONDS: Final = 0.1
END_SECONDS: Final = 5.0


class HostsRunAlready(Conflict):
    """409: another keeper serves the folder."""

    message = "Key hosts run here already"


@dataclass
class Child:
    """One host as its keeper sees it; times are `time.monotonic()` seconds."""

    number: int
    pid: int = 0
    beat: socket.socket | None = None
    started: float = 0.0
    asked: float = 0.0
    heard: float = 0.0
    deaths: int = 0
    due: float = 0.0


@dataclass
class Keeper:
    """Keeps `count` hosts over `folder`; `confs` are their values of SOFTHSM2_CONF, where they differ."""

    folder: Path
    count: int
    confs: Sequence[str] = ()
    stopping: bool = False
    children: list[Child] = field(default_factory=list)

    def run(self) -> None:
        """Keep them until SIGTERM or SIGINT; raises `HostsRunAlready`.

        Hosts are forked: this process must have no other threads and must not have opened the module.
        """
        address.make_folder(self.folder)
        with (self.folder / "lock").open("a") as lock:
            _take(lock)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, self._stop)
            gc.collect()
            gc.freeze()  # what is here now is shared with the hosts, and stays so
            self.children = [Child(number) for number in range(self.count)]
            try:
                while not self.stopping:
                    self._tend(lock)
            finally:
                self._end()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def _tend(self, lock: IO[str]) -> None:
        now = time.monotonic()
        for child in self.children:
            if child.pid and self._is_dead(child):
                self._bury(child, now)
            if not child.pid and now >= child.due:
                self._start(child, lock)
            if child.beat is not None:
                _listen_to(child, child.beat, now)
        time.sleep(POLL_SECONDS)

    def _is_dead(self, child: Child) -> bool:
        found, status = os.waitpid(child.pid, os.WNOHANG)
        if not found:
            return False
        level = logging.INFO if self.stopping else logging.WARNING
        logger.log(level, "Key host %d (pid %d) ended with %d", child.number, child.pid, _code(status))
        return True

    def _bury(self, child: Child, now: float) -> None:
        child.deaths = 0 if now - child.started > STEADY_SECONDS else child.deaths + 1
        child.due = now + PAUSES[min(max(0, child.deaths - 1), len(PAUSES) - 1)]
        child.pid = 0
        if child.beat is not None:
            child.beat.close()
            child.beat = None

    def _start(self, child: Child, lock: IO[str]) -> None:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                lock.close()
                for other in (ours, *(one.beat for one in self.children if one.beat is not None)):
                    other.close()
                code = self._be_host(child.number, theirs)
            finally:
                os._exit(code)
        theirs.close()
        now = time.monotonic()
        child.pid, child.beat, child.started, child.asked, child.heard = pid, ours, now, now, now

    def _be_host(self, number: int, beat: socket.socket) -> int:
        """The life of a host, in the forked child; its exit code."""
        for name in (signal.SIGINT, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        if self.confs:
            os.environ["SOFTHSM2_CONF"] = self.confs[number]
        try:
            Server(self.folder, number, beat).run()
        except Exception:
            logger.exception("Key host %d failed", number)
            return 1
        finally:
            (self.folder / address.name_of(number)).unlink(missing_ok=True)
            sys.stderr.flush()
        return 0

    def _end(self) -> None:
        """End all hosts: calls in flight get a moment."""
        for child in self.children:
            if child.pid:
                os.kill(child.pid, signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        for child in self.children:
            while child.pid and not self._is_dead(child):
                if time.monotonic() > deadline:
                    os.kill(child.pid, signal.SIGKILL)
                time.sleep(0.02)
            child.pid = 0


def _listen_to(child: Child, beat: socket.socket, now: float) -> None:
    """Ask for a beat, and end a host that has been silent for too long."""
    try:
        if select.select([beat], [], [], 0)[0] and beat.recv(64):
            child.heard = now
        if now - child.asked >= BEAT_SECONDS:
            child.asked = now
            beat.send(b".", socket.MSG_DONTWAIT)
    except OSError as error:
        logger.debug("No beat of key host %d: %s", child.number, error)
    if now - child.heard > SILENCE_SECONDS:
        logger.error("Key host %d (pid %d) hangs and is ended", child.number, child.pid)
        os.kill(child.pid, signal.SIGKILL)
        child.heard = now


def _take(lock: IO[str]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise HostsRunAlready from error


def _code(status: int) -> int:
    return os.waitstatus_to_exitcode(status)
