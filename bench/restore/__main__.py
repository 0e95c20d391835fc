"""`./run bench restore`: fill an installation, back it up, lose it, and restore it on an empty machine.

Prints the seconds of each step beside those of copying the same files in the same run. Exits with 1 if
`restore_check` finds anything.
"""

import argparse
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from bench.harness import machine
from bench.harness.command import ended, tell
from bench.harness.report import number, table
from bench.restore.backups import Backups
from bench.restore.filling import GIGABYTE, fill, size_of
from bench.restore.site import Site
from compliance.localdev.console import StepFailed, step
from compliance.localdev.layout import find_layout
from compliance.localdev.servers.servers import Servers
from compliance.localdev.state import LockBusy, locked

AGENTS = "4"
Result = TypeVar("Result")


@dataclass
class RestoreRun:
    """One run in `folder`: rows of name, seconds, the seconds of its physical limit, and what that is."""

    size: int
    log: int
    entries: int
    jobs: int
    folder: Path
    rows: list[tuple[str, float, float | None, str]] = field(default_factory=list)

    def timed(self, name: str, work: Callable[[], Result]) -> tuple[Result, float]:
        with step(name):
            began = time.monotonic()
            result = work()
            return result, time.monotonic() - began

    def measure(self) -> list[str]:
        """Do everything; return what `restore_check` finds wrong."""
        servers = Servers(find_layout())
        old, new = Site(servers, self.folder / "old"), Site(servers, self.folder / "new")
        # Of its own: a site keeps the secrets of the folder that it found.
        self.clear(*(Site(servers, self.folder / name) for name in ("old", "new")))
        try:
            backups, state = self._back_up(old)
            with step("the installation is lost"):
                old.destroy()
            return self._restore(new, backups, state)
        finally:
            self.clear(old, new)

    def lines(self) -> list[str]:
        """Return the table of what was measured."""
        rows = [
            [name, number(seconds), number(limit), number(limit / seconds if limit else None), what]
            for name, seconds, limit, what in self.rows
        ]
        return table([[f"{self.size / GIGABYTE:g} GB", "s", "limit, s", "of limit", ""], *rows])

    def clear(self, *sites: Site) -> None:
        for site in sites:
            site.destroy()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _back_up(self, site: Site) -> tuple[Backups, dict[str, Any]]:
        """Fill a site, back it up, and kill it; return the backups, and what it was at the end."""
        with step("an installation"):
            site.make()
            site.child("live", site.demo["tenant_id"], AGENTS)
        fill(site, size=self.size, entries=self.entries)
        backups = Backups.of(site, self.folder / "backups")
        try:
            _, seconds = self.timed("backup", backups.barman.back_up)
            limit = self._copied(site.postgres.data())
            self.rows.append(("backup", seconds, limit, "copying the data, synced"))
            fill(site, size=size_of(site) + self.log, entries=1)
            site.child("live", site.demo["tenant_id"], AGENTS)
            backups.barman.catch_up(site)
            backups.keep_files(site)
            state = site.child("state")
        finally:
            site.kill()
            backups.barman.stop()
        return backups, state

    def _restore(self, site: Site, backups: Backups, state: dict[str, Any]) -> list[str]:
        _, copied = self.timed("restore: files", lambda: backups.restore(site, jobs=self.jobs))
        limit = self._copied(site.postgres.data())
        self.rows.append(("restore: files", copied, limit, "copying the same files, synced"))
        reading = self._read(site.postgres.data() / "pg_wal")
        _, replayed = self.timed("restore: replay of the log", site.start)
        self.rows.append(("restore: replay of the log", replayed, reading, "reading the log"))
        kept = self._kept(state)
        found, checked = self.timed("restore_check", lambda: site.check(*kept))
        self.rows.append(("restore_check", checked, None, ""))
        serials = state["live"]["active"]
        signed, seconds = self.timed("agents sign, lists continue", lambda: site.child("sign", *serials))
        published = site.child("publish")
        self.rows.append(("restored and checked", copied + replayed + checked + seconds, None, ""))
        wrong = [f"{each['check']}: {each['detail']}" for each in found.values() if not each["ok"]]
        wrong += [f"{serial} does not sign" for serial, is_valid in signed.items() if not is_valid]
        if published["live"]["list_number"] <= state["live"]["list_number"]:
            wrong.append("list numbers do not continue")
        return wrong

    def _kept(self, state: dict[str, Any]) -> list[str]:
        """Write what others kept of the live environment, and return the arguments that give it."""
        checkpoint, crl = self.folder / "checkpoint", self.folder / "crl"
        checkpoint.write_text(state["live"]["checkpoint"])
        crl.write_bytes(b64decode(state["live"]["list"]))
        return ["--environment", "live", "--against", str(checkpoint), "--list", str(crl)]

    def _copied(self, source: Path) -> float:
        """Return the seconds in which the system copies these files to the disk."""
        target = self.folder / "copy"
        try:
            _, seconds = self.timed("the same files copied", lambda: _copy(source, target))
        finally:
            shutil.rmtree(target, ignore_errors=True)
        return seconds

    def _read(self, folder: Path) -> float:
        began = time.monotonic()
        for path in folder.iterdir():
            if path.is_file():
                with closing(path.open("rb")) as file:
                    while file.read(1 << 20):
                        pass
        return time.monotonic() - began


def _copy(source: Path, target: Path) -> None:
    # A server at work removes files meanwhile: cp then copies the others and says so.
    command = ["cp", "-r", "--reflink=never", str(source), str(target)]
    subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["sync", "-f", str(target)], check=True)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; the exit code."""
    run = _run_of(arguments)
    return ended(lambda: _measured(run))


def _measured(run: RestoreRun) -> int:
    layout, header = find_layout(), machine.described()
    layout.prepare()
    try:
        with locked(layout.run / "restore.lock", wait=False):
            wrong = run.measure()
    except LockBusy:
        raise StepFailed("another benchmark of restores runs here", hint="wait for it to end") from None
    tell([header, "", *run.lines(), "", *(wrong or ["Everything verifies."])])
    return 1 if wrong else 0


def _run_of(arguments: Sequence[str]) -> RestoreRun:
    parser = argparse.ArgumentParser(prog="./run bench restore", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="of the databases, in GB (%(default)s)")
    parser.add_argument("--log", type=float, help="more, in GB, after the backup (a tenth of the size)")
    parser.add_argument("--entries", type=int, help="audit entries (100,000 a GB)")
    parser.add_argument("--jobs", type=int, default=2, help="of rsync side by side (%(default)s)")
    parsed = parser.parse_args(arguments)
    return RestoreRun(
        size=round(parsed.size * GIGABYTE),
        log=round((parsed.size / 10 if parsed.log is None else parsed.log) * GIGABYTE),
        entries=round(parsed.size * 100_000) if parsed.entries is None else parsed.entries,
        jobs=parsed.jobs,
        folder=find_layout().local / "restore",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
