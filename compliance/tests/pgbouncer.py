"""A private PgBouncer in transaction mode before the private PostgreSQL; root starts it as `nobody`."""

import os
import re
import shutil
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from compliance.localdev.console import StepFailed
from compliance.localdev.ports import HOST, private_port
from compliance.localdev.servers import processes
from compliance.localdev.servers.postgres import DatabaseRole, clean_environment, server_user
from compliance.localdev.state import read_json, write_private

STOP = ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
PREPARES_FROM = (1, 21)
"""The first version that keeps prepared statements in transaction mode."""


def pgbouncer_program() -> Path | None:
    """Return the system's PgBouncer, None if there is none."""
    found = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/sbin")
    return Path(found) if found else None


def keeps_prepared_statements(program: Path) -> bool:
    """Whether this version keeps prepared statements in transaction mode."""
    said = processes.captured([str(program), "--version"], cwd="/").stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said)
    return found is not None and tuple(map(int, found.groups())) >= PREPARES_FROM


@dataclass(frozen=True)
class PgBouncer(processes.Daemon):
    """One pooler in `folder` for all databases of the server on `server_port`; its pools hold `size` each."""

    title = "PgBouncer"
    pid_name = "pgbouncer.pid"
    stop_steps = STOP

    folder: Path
    ports: Path
    server_port: int
    roles: Sequence[DatabaseRole]
    size: int = 20

    def port(self) -> int:
        """Return the port of the running or the last pooler; 0 before the first start."""
        return int(read_json(self.ports).get("pgbouncer", 0))

    def url(self, server_url: str) -> str:
        """Return the address of a database of the server by way of the pooler."""
        parts = urlsplit(server_url)
        credentials = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{credentials}@{HOST}:{self.port()}"))

    def start(self) -> bool:
        """Start the pooler unless it runs; return whether it was started. Raises StepFailed."""
        if self.running() is not None:
            return False
        program = pgbouncer_program()
        if program is None:
            raise StepFailed("no PgBouncer was found", hint="install the distribution's package pgbouncer")
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        port = private_port(self.ports, "pgbouncer")
        conf, users = self.folder / "pgbouncer.ini", self.folder / "users.txt"
        write_private(conf, self._configuration(port, users, program))
        write_private(users, "".join(f'"{role.name}" "{role.password}"\n' for role in self.roles))
        user = server_user()
        if user is not None:
            for path in (self.folder, conf, users):
                os.chown(path, user, user)
        log = self.folder.with_suffix(".log")
        child = processes.spawn(
            [str(program), str(conf)], log=log, env=clean_environment(), cwd=self.folder, user=user
        )
        processes.wait_until(lambda: child.poll() is not None or self._answers(), seconds=15)
        if child.poll() is not None or not self._answers():
            raise StepFailed("PgBouncer did not start", hint=f"read {log}")
        return True

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self.port()), timeout=1.0):
                return True
        except OSError:
            return False

    def _configuration(self, port: int, users: Path, program: Path) -> str:
        settings: dict[str, object] = {
            "listen_addr": HOST,
            "pidfile": self.pid_file,
            "listen_port": port,
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": users,
            "pool_mode": "transaction",
            "default_pool_size": self.size,
            "max_client_conn": 2000,
            "log_connections": 0,
            "log_disconnections": 0,
        }
        if keeps_prepared_statements(program):
            settings["max_prepared_statements"] = 500
        lines = "".join(f"{name} = {value}\n" for name, value in settings.items())
        return f"[databases]\n* = host={HOST} port={self.server_port}\n\n[pgbouncer]\n{lines}"
