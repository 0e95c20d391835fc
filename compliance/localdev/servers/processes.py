"""Programs run to their end, and processes that outlive the command that started them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..console import StepFailed

PROC = Path("/proc")
LOG_LIMIT = 20 * 1024 * 1024


def running(pid_file: Path) -> int | None:
    """Return the process that `pid_file` names if it works in the file's folder, as the writer of it does.

    Another process that got the pid since works elsewhere, and a zombie nowhere.
    """
    try:
        pid = pid_file.read_text().partition("\n")[0].strip()
    except OSError:
        return None
    return int(pid) if pid.isdigit() and works_in(int(pid), pid_file.parent) else None


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
            **_becoming(user),
        )


def captured(
    command: Sequence[str], *, text: str = "", user: int | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as `user` and with `text` as its standard input; capture its output."""
    options |= {"input": text, "capture_output": True, "text": True, **_becoming(user)}
    return subprocess.run(command, check=False, **options)


def _becoming(user: int | None) -> dict[str, Any]:
    return {} if user is None else {"user": user, "group": user, "extra_groups": []}


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


def stop(pid_file: Path, name: str, *, steps: Sequence[tuple[signal.Signals, float]]) -> bool:
    """Send each signal of `steps` and wait so many seconds; return whether the process ran.

    Raises StepFailed if it survives.
    """
    pid, folder = running(pid_file), pid_file.parent
    if pid is None:
        return False
    for number, seconds in steps:
        if works_in(pid, folder):
            send(pid, number)
            wait_until(lambda: not works_in(pid, folder), seconds=seconds)
    if works_in(pid, folder):
        raise StepFailed(f"{name} (pid {pid}) won't stop", hint="end that process by hand")
    return True


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
