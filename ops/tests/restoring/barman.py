"""Barman over one site: its configuration, its role in PostgreSQL, and the commands that a backup takes."""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from compliance.localdev.console import StepFailed
from compliance.localdev.install import prepare
from compliance.localdev.ports import HOST
from compliance.localdev.servers import processes
from compliance.localdev.servers.databases import query
from compliance.localdev.servers.postgres import postgres_bin
from compliance.localdev.state import write_private
from ops.tests.cluster.programs import clean
from ops.tests.restoring.site import Site

SERVER = "service"
RECEIVER = "barman_receive_wal"
GRANTS = """
GRANT EXECUTE ON FUNCTION pg_backup_start(text, boolean) TO barman;
GRANT EXECUTE ON FUNCTION pg_backup_stop(boolean) TO barman;
GRANT EXECUTE ON FUNCTION pg_switch_wal() TO barman;
GRANT EXECUTE ON FUNCTION pg_create_restore_point(text) TO barman;
GRANT pg_read_all_settings, pg_read_all_stats, pg_checkpoint TO barman;
"""
WAIT_SECONDS = 120.0


def find_barman(site: Site) -> Path:
    """Return the program, installed among the benchmarks' requirements. Raises StepFailed without rsync."""
    if shutil.which("rsync") is None:
        raise StepFailed("rsync was not found", hint="install it (Debian, Ubuntu: apt-get install rsync)")
    layout = site.servers.layout
    prepare("bench", venv=layout.bench_venv)
    return layout.bench_venv / "bin/barman"


@dataclass
class Barman:
    """Backups of one site under `folder`; `password` is its role's."""

    program: Path
    folder: Path
    password: str
    receiver: "subprocess.Popen[bytes] | None" = None

    def adopt(self, site: Site) -> None:
        """Make the role, write the configuration, and receive the site's log from now on."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        query(
            site.postgres.url("postgres"), f"CREATE ROLE barman LOGIN REPLICATION PASSWORD '{self.password}'"
        )
        query(site.postgres.url("postgres"), GRANTS)
        write_private(self.folder / "pgpass", f"{HOST}:*:*:barman:{self.password}\n")
        write_private(self.folder / "barman.conf", self._configuration(site.postgres.port()))
        self.run("receive-wal", "--create-slot", SERVER)
        self.receiver = processes.spawn(
            [*self._command, "receive-wal", SERVER],
            log=self.folder / "receiver.log",
            env=self._environment,
            cwd=self.folder,
        )
        started = processes.wait_until(lambda: self._received(site) is not None, seconds=WAIT_SECONDS)
        if not started:
            raise StepFailed("Barman receives no log", hint=f"read {self.folder}/receiver.log")

    def back_up(self) -> None:
        """Make a base backup, once the log arrives."""
        self.run("switch-wal", "--force", "--archive", "--archive-timeout", "60", SERVER)
        self.run("check", SERVER)
        self.run("backup", "--wait", "--immediate-checkpoint", SERVER)

    def catch_up(self, site: Site) -> None:
        """Wait until everything that is committed now has been received; told every ten seconds."""
        with site.admin() as connection:
            (row,) = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchall()
        if not processes.wait_until(lambda: self._has(site, str(row[0])), seconds=WAIT_SECONDS, pause=0.2):
            raise StepFailed("Barman is behind", hint=f"read {self.folder}/receiver.log")

    def stop(self) -> None:
        """Stop receiving; the log so far is archived."""
        if self.receiver is not None:
            self.receiver.terminate()
            self.receiver.wait()
            self.receiver = None

    def restore(self, target: Path, *, moment: datetime | None = None, jobs: int = 1) -> None:
        """Restore the newest backup that serves, up to the end of the log or to a moment.

        The server in `target` replays the log and takes connections when it is started.
        """
        self.run("archive-wal", SERVER)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Without `--partial-wal` the segment that was still being written would be left behind.
        options = ["--no-get-wal", "--partial-wal", "--jobs", str(jobs)]
        if moment is not None:
            options += ["--target-time", moment.isoformat(), "--target-action", "promote"]
        self.run("restore", *options, SERVER, "auto", str(target))

    def run(self, *arguments: str) -> str:
        """Run a command of Barman; return what it printed. Raises: StepFailed."""
        done = processes.captured([*self._command, *arguments], env=self._environment, cwd=self.folder)
        if done.returncode != 0:
            reason = " / ".join(f"{done.stdout}{done.stderr}".strip().splitlines()[-6:])
            raise StepFailed(f"barman {arguments[0]} failed: {reason}", hint=f"read {self.folder}/barman.log")
        return done.stdout

    @property
    def _command(self) -> list[str]:
        return [str(self.program), "-c", str(self.folder / "barman.conf")]

    @property
    def _environment(self) -> dict[str, str]:
        # Without our Python's path: Barman has a virtual environment of its own.
        path = f"{self.program.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        return {**clean(os.environ), "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "PATH": path}

    def _configuration(self, port: int) -> str:
        conninfo = f"host={HOST} port={port} user=barman dbname=postgres passfile={self.folder}/pgpass"
        return f"""\
[barman]
barman_home = {self.folder}
barman_user = {pwd.getpwuid(os.geteuid()).pw_name}
configuration_files_directory = {self.folder}/conf.d
log_file = {self.folder}/barman.log

[{SERVER}]
description = The service's databases
conninfo = {conninfo}
streaming_conninfo = {conninfo}
backup_method = postgres
streaming_archiver = on
slot_name = barman
path_prefix = {postgres_bin()}
"""

    def _received(self, site: Site) -> str | None:
        """Return up to where the log was written here; None while nothing is received."""
        statement = "SELECT write_lsn::text FROM pg_stat_replication WHERE application_name = %s"
        with site.admin() as connection:
            rows = connection.execute(statement, [RECEIVER]).fetchall()
        return str(rows[0][0]) if rows and rows[0][0] is not None else None

    def _has(self, site: Site, wanted: str) -> bool:
        received = self._received(site)
        if received is None:
            return False
        with site.admin() as connection:
            statement = "SELECT %s::pg_lsn >= %s::pg_lsn"
            (row,) = connection.execute(statement, [received, wanted]).fetchall()
        return bool(row[0])
