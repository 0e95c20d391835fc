"""Programs run to their end, and processes that outlive the command that started them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..console import StepFailed

PROC = Path("/proc")
LOG_LIMIT = 20 * 1024 * 1024


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    user: int | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a daemon as `user` in a session of its own, detached from our terminal and pipes.

    It inherits the open files `pass_fds`. A log of over `LOG_LIMIT` bytes replaces its `.old.log` first.
    """
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_suffix(".old.log"))
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=cwd,
            start_new_session=True,
            pass_fds=pass_fds,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )


def captured(
    command: Sequence[str], *, text: str = "", user: int | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `user` and with `text` as its standard input; capture its output."""
    options |= {"user": user, "group": user, "extra_groups": None if user is None else []}
    return subprocess.run(command, check=False, input=text, capture_output=True, text=True, **options)


def tail(done: subprocess.CompletedProcess[str], lines: int = 3) -> str:
    """Return the last lines of a command's output, or its exit code."""
    found = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return " / ".join(found[-lines:]) or f"exit code {done.returncode}"


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP: unlike Ctrl-C at a terminal, it reaches us but not our children."""


def run_foreground(command: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> int:
    """Run a child on our terminal; return its exit code (128 + signal, as shells do).

    On an interrupt the child gets 20 seconds to clean up; then the interrupt is raised again.
    """
    child = subprocess.Popen(command, env=env, cwd=cwd)
    try:
        return code if (code := child.wait()) >= 0 else 128 - code
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, Terminated):
            child.send_signal(signal.SIGINT)
        try:
            child.wait(timeout=20)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            child.kill()
            child.wait()
        raise


Steps = Sequence[tuple[signal.Signals, float]]
"""Signals that end a process, each with the seconds that it has then."""


class Daemon:
    """A server in `folder` that writes its pid to `pid_name` there, in the folder where it works."""

    folder: Path
    title: ClassVar[str]
    pid_name: ClassVar[str]
    stop_steps: ClassVar[Steps]

    @property
    def pid_file(self) -> Path:
        return self.folder / self.pid_name

    def running(self) -> int | None:
        """Return the process that the file names if it works in the file's folder.

        Another process that got the pid since works elsewhere, and a zombie nowhere.
        """
        try:
            pid = self.pid_file.read_text().partition("\n")[0].strip()
        except OSError:
            return None
        return int(pid) if pid.isdigit() and works_in(int(pid), self.pid_file.parent) else None

    def stop(self, steps: Steps = ()) -> bool:
        """Send each signal of the steps, by default the daemon's own; return whether the process ran.

        Raises StepFailed if it survives.
        """
        pid, folder = self.running(), self.pid_file.parent
        if pid is None:
            return False
        for number, seconds in steps or self.stop_steps:
            if works_in(pid, folder):
                send(pid, number)
                wait_until(lambda: not works_in(pid, folder), seconds=seconds)
        if works_in(pid, folder):
            raise StepFailed(f"{self.title} (pid {pid}) won't stop", hint="end that process by hand")
        return True


@dataclass(frozen=True)
class Supervisor(Daemon):
    """The process that keeps the parts of a stack up."""

    title = "the supervisor"
    pid_name = "supervisor.pid"
    stop_steps = ((signal.SIGTERM, 40.0), (signal.SIGKILL, 5.0))

    folder: Path


def send(pid: int, number: signal.Signals, *, group: bool = False) -> None:
    """Send a signal to a process or its group, if it still exists."""
    with suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(pid, number)


def wait_until(condition: Callable[[], bool], *, seconds: float, pause: float = 0.03) -> bool:
    """Poll `condition` for up to `seconds`; return whether it came true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def marked(marker: str) -> Iterator[int]:
    """Yield the live processes whose environment contains `marker` (NAME=value)."""
    wanted = os.fsencode(marker)
    for pid in _pids():
        with suppress(OSError):
            if wanted in (PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                yield pid


def works_in(pid: int, folder: Path) -> bool:
    """Whether the live process `pid` has `folder` as its working directory."""
    try:
        return (PROC / str(pid) / "cwd").readlink() == folder
    except OSError:
        return False


def in_folder(folder: Path) -> Iterator[int]:
    """Yield the live processes whose working directory is `folder`, as it is for all of PostgreSQL's."""
    return (pid for pid in _pids() if works_in(pid, folder))


def _pids() -> Iterator[int]:
    return (int(found.name) for found in PROC.glob("[0-9]*") if found.name != str(os.getpid()))
