"""The stack's key hosts: processes that open its tokens for all others, if PKCS11_HOSTS asks for any."""

import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..console import StepFailed
from . import processes

STOP = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True)
class KeyHosts:
    """`count` key hosts that listen in `folder`; their process records are in `records`."""

    root: Path
    folder: Path
    count: int
    records: Path
    log: Path

    def running(self) -> processes.Record | None:
        """The first host, if all of them live."""
        found = [processes.load(self._record(number)) for number in range(self.count)]
        return found[0] if found and all(found) else None

    def serve(self) -> bool:
        """Whether every host lives and takes connections."""
        listening = (self._socket(number).exists() for number in range(self.count))
        return self.running() is not None and all(listening)

    def start(self, environment: Mapping[str, str], *, wait: bool = True) -> None:
        for number in range(self.count):
            if processes.load(self._record(number)) is not None:
                continue
            self._socket(number).unlink(missing_ok=True)
            command = [sys.executable, str(self.root / "manage.py"), "key_host", "--number", str(number)]
            child = processes.spawn(command, log=self.log, env=environment, cwd=self.root)
            processes.save(self._record(number), child.pid)
        if wait:
            processes.wait_until(lambda: self.serve() or self.running() is None, seconds=60)
        if wait and not self.serve():
            raise StepFailed("the key hosts did not start", hint=f"read {self.log}")

    def stop(self) -> None:
        """Stop all hosts, those of an earlier and larger number included."""
        for record in sorted(self.records.glob("key_host-*.json")):
            processes.stop_server(processes.load(record), "the key host", steps=STOP)
            record.unlink(missing_ok=True)

    def _record(self, number: int) -> Path:
        return self.records / f"key_host-{number}.json"

    def _socket(self, number: int) -> Path:
        return self.folder / f"host-{number}.sock"
