"""Processes that outlive the command that started them: starting, recognising and stopping them.

A record holds the pid with the kernel's start time of the process and the boot's id, so that a pid
that was used again, or a reboot, is never mistaken for our server.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .state import read_json, write_json

PROC = Path("/proc")
# Seconds that a child on our terminal gets to clean up after an interrupt.
GRACE = 20.0
# Bytes after which a log is set aside.
LOG_LIMIT = 20 * 1024 * 1024
OLD_LOG = ".old.log"


@dataclass(frozen=True)
class Record:
    """One process of ours; `started` is in clock ticks since boot."""

    pid: int
    started: int
    boot: str


def boot_id() -> str:
    """The kernel's id of this boot; empty in a sandbox whose kernel has none."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of `pid`; None when it is gone or a zombie."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[19])


def record(pid: int) -> Record | None:
    """The record of a live process; None when it is already gone."""
    started = start_time(pid)
    return None if started is None else Record(pid, started, boot_id())


def save(path: Path, process: Record) -> None:
    write_json(path, {"pid": process.pid, "started": process.started, "boot": process.boot})


def load(path: Path) -> Record | None:
    """The live process that `path` records; None when there is none (any more)."""
    stored = read_json(path)
    try:
        process = Record(int(stored["pid"]), int(stored["started"]), str(stored["boot"]))
    except (KeyError, TypeError, ValueError):
        return None
    return process if is_alive(process) else None


def is_alive(process: Record) -> bool:
    return process.boot == boot_id() and start_time(process.pid) == process.started


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    uid: int | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a daemon in its own session with no tie to our terminal or pipes; as user `uid` if given.

    It has the open files `pass_fds` under the same numbers.
    """
    ids: dict[str, object] = {} if uid is None else {"user": uid, "group": uid, "extra_groups": []}
    set_aside(log)
    with log.open("ab") as output:
        return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=pass_fds,
            **ids,
        )


def set_aside(log: Path) -> None:
    """Copy a log that has grown beyond the limit to `.old.log`, in place of the last one, and empty it.

    What writes it goes on: `spawn()` opens logs for appending. Lines written between copy and cut are lost.
    """
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        shutil.copyfile(log, log.with_suffix(OLD_LOG))
        os.truncate(log, 0)


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came; unlike Ctrl-C at a terminal it reached only us, not our children."""


def run_foreground(command: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> int:
    """Run a child on our terminal to its end; its exit code (128 + signal as shells give it).

    An interrupt leaves the child `GRACE` seconds to clean up after itself, and is then raised again.
    """
    with subprocess.Popen(command, env=dict(env), cwd=cwd) as child:
        try:
            code = child.wait()
        except KeyboardInterrupt as interrupt:
            if isinstance(interrupt, Terminated):
                child.send_signal(signal.SIGINT)
            try:
                child.wait(timeout=GRACE)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                child.kill()
                child.wait()
            raise
    return code if code >= 0 else 128 - code


def stop(process: Record, *, steps: Sequence[tuple[signal.Signals, float]]) -> bool:
    """Send each signal in turn and wait its seconds; whether the process is gone at the end."""
    for number, seconds in steps:
        if not is_alive(process):
            return True
        send(process.pid, number)
        if wait_until(lambda: not is_alive(process), seconds=seconds):
            return True
    return not is_alive(process)


def send(pid: int, number: signal.Signals, *, group: bool = False) -> None:
    """Send a signal to a process or its group; one that is gone already is fine."""
    with suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(pid, number)


def wait_until(condition: Callable[[], bool], *, seconds: float, pause: float = 0.03) -> bool:
    """Ask `condition` again and again for `seconds`; what it said last."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def marked(marker: str) -> Iterator[int]:
    """The live processes whose environment holds the entry `marker` (NAME=value)."""
    wanted = os.fsencode(marker)
    for folder in PROC.iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0") and start_time(int(folder.name)) is not None:
            yield int(folder.name)


def works_in(pid: int, folder: Path) -> bool:
    """Whether the live process `pid` has `folder` as its working directory."""
    try:
        return (PROC / str(pid) / "cwd").readlink() == folder and start_time(pid) is not None
    except OSError:
        return False


def in_folder(folder: Path) -> Iterator[int]:
    """The live processes whose working directory is `folder`; PostgreSQL's all have their data's."""
    pids = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())
    return (pid for pid in pids if works_in(pid, folder))
