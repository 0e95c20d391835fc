"""The stack's key hosts: the processes that open its tokens for all others."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from . import processes
from .console import StepFailed

START_SECONDS = 60.0
STOP = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True)
class KeyHosts:
    """`count` hosts that listen in `folder`, under one keeper whose process `record` names."""

    root: Path
    folder: Path
    count: int
    record: Path
    log: Path

    def running(self) -> processes.Record | None:
        """The keeper, if it lives; it looks after the hosts."""
        return processes.load(self.record)

    def serve(self) -> bool:
        """Whether every host takes connections."""
        return self.count > 0 and all(self._answers(number) for number in range(self.count))

    def start(self, environment: Mapping[str, str], *, wait: bool = True) -> bool:
        """Start them unless they run, and wait until all serve; whether they were started."""
        started = self.running() is None
        child = self._spawn(environment) if started else None
        if wait:
            self._wait(child)
        return started

    def stop(self) -> bool:
        """Stop the keeper, and thereby the hosts; whether it was running."""
        process = self.running()
        if process is None:
            return False
        if not processes.stop(process, steps=STOP):
            raise StepFailed(f"the key hosts (pid {process.pid}) won't stop", hint="end that process by hand")
        return True

    def _spawn(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(self.root / "manage.py"), "key_host"]
        child = processes.spawn(command, log=self.log, env=environment, cwd=self.root)
        own = processes.record(child.pid)
        if own is not None:
            processes.save(self.record, own)
        return child

    def _wait(self, child: subprocess.Popen[bytes] | None) -> None:
        def settled() -> bool:
            return self.serve() or (child is not None and child.poll() is not None)

        processes.wait_until(settled, seconds=START_SECONDS)
        if not self.serve():
            raise StepFailed("the key hosts did not start", hint=f"read {self.log}")

    def _answers(self, number: int) -> bool:
        """Asked through the folder's descriptor: its path may be too long for a socket's address."""
        try:
            folder = os.open(self.folder, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.settimeout(2.0)
                probe.connect(f"/proc/self/fd/{folder}/host-{number}.sock")
        except OSError:
            return False
        finally:
            os.close(folder)
        return True
