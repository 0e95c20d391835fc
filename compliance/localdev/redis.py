"""The private Valkey (or Redis) server: broker, cache and rate limits of one stack or one test run.

It holds nothing that PostgreSQL doesn't also know, so a snapshot is enough and no append-only file is kept.
"""

import os
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import processes
from .binaries import redis_program
from .console import StepFailed
from .ports import HOST, private_port

START_SECONDS = 15.0
STOP = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True)
class RedisServer:
    """One server over the data in `folder`; `snapshots` says whether it saves them (a test run's doesn't)."""

    folder: Path
    ports: Path
    password: str
    snapshots: bool = True

    @property
    def record(self) -> Path:
        return self.folder / "server.json"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    def running(self) -> processes.Record | None:
        return processes.load(self.record)

    def port(self) -> int:
        """The port written into the present configuration; 0 before the first start."""
        return read_port(self.folder / "server.conf")

    def url(self) -> str:
        return f"redis://:{self.password}@{HOST}:{self.port()}/0"

    def start(self) -> bool:
        """Start the server unless it runs; whether it was started. Raises StepFailed when it won't."""
        if self.running() is not None:
            return False
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        port = private_port(self.ports, "redis")
        conf = self.folder / "server.conf"
        write_private(conf, "\n".join(self._configuration(port)) + "\n")
        child = processes.spawn(
            [str(redis_program()), str(conf)], log=self.log, env=dict(os.environ), cwd=self.folder
        )
        record = processes.record(child.pid)
        if record is not None:
            processes.save(self.record, record)
        up = processes.wait_until(
            lambda: child.poll() is not None or ping(port, self.password), seconds=START_SECONDS
        )
        if not up or child.poll() is not None:
            raise StepFailed("Valkey did not start", hint=f"read {self.log}")
        return True

    def stop(self) -> bool:
        """Save and stop; whether it was running."""
        process = self.running()
        if process is None:
            return False
        if not processes.stop(process, steps=STOP):
            raise StepFailed(f"Valkey (pid {process.pid}) won't stop", hint="end that process by hand")
        self.record.unlink(missing_ok=True)
        return True

    def _configuration(self, port: int) -> Sequence[str]:
        save = "save 3600 1 300 100 60 10000" if self.snapshots else 'save ""'
        return (
            f"bind {HOST}",
            f"port {port}",
            f'requirepass "{self.password}"',
            f"dir {quoted(str(self.folder))}",
            "daemonize no",
            "appendonly no",
            save,
            # A snapshot that fails (a full disk) must not make the broker refuse writes.
            "stop-writes-on-bgsave-error no",
            "maxmemory-policy noeviction",
        )


def ping(port: int, password: str) -> bool:
    """Whether our server answers on `port`; somebody else's would not know the password."""
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2:
                received = connection.recv(1024)
                if not received:
                    break
                answer += received
    except OSError:
        return False
    return answer == b"+OK\r\n+PONG\r\n"


def quoted(text: str) -> str:
    """`text` as one argument of a configuration line."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def read_port(conf: Path) -> int:
    """The `port` of a configuration file; 0 when there is none."""
    if not conf.exists():
        return 0
    lines = (line.split() for line in conf.read_text().splitlines())
    return next((int(words[1]) for words in lines if len(words) == 2 and words[0] == "port"), 0)


def write_private(path: Path, text: str) -> None:
    """Write `text` so that only its owner can ever read it."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
