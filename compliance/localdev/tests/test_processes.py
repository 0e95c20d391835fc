"""Recognising and ending processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compliance.localdev.servers import processes

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import time, signal as s; s.signal(s.SIGTERM, s.SIG_IGN); print('.', flush=True); time.sleep(60)",
]


@dataclass
class Tried(processes.Daemon):
    folder: Path
    title = "the child"
    pid_name = "server.pid"
    stop_steps = ((signal.SIGTERM, 0.3), (signal.SIGKILL, 5.0))


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    child = processes.spawn(
        SLEEP, log=tmp_path / "log", env=os.environ | {"MARKER": str(tmp_path)}, cwd=tmp_path
    )
    # The kernel shows the environment a moment after the program was replaced.
    deadline = time.monotonic() + 30
    while not Path(f"/proc/{child.pid}/environ").read_bytes() and time.monotonic() < deadline:
        time.sleep(0.01)
    yield child
    child.kill()
    child.wait()


@pytest.fixture
def pid_file(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> Path:
    file = tmp_path / "server.pid"
    file.write_text(f"{sleeper.pid}\n")
    return file


def test_process_is_found_by_its_pid_file(sleeper: subprocess.Popen[bytes], pid_file: Path) -> None:
    assert Tried(pid_file.parent).running() == sleeper.pid


def test_a_pid_used_again_is_not_our_process(pid_file: Path) -> None:
    pid_file.write_text(str(os.getpid()))

    assert Tried(pid_file.parent).running() is None


def test_a_zombie_counts_as_gone(sleeper: subprocess.Popen[bytes], pid_file: Path) -> None:
    sleeper.send_signal(signal.SIGKILL)

    assert processes.wait_until(lambda: Tried(pid_file.parent).running() is None, seconds=60)
    assert sleeper.returncode is None


@pytest.mark.parametrize("content", ["", "x", "-1", "99999999999"])
def test_a_damaged_pid_file_means_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / "server.pid").write_text(content)

    assert Tried(tmp_path).running() is None


def test_a_daemon_has_its_own_session_and_is_found_by_mark_and_folder(
    sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    assert os.getsid(sleeper.pid) == sleeper.pid
    assert list(processes.marked(f"MARKER={tmp_path}")) == [sleeper.pid]
    assert list(processes.in_folder(tmp_path)) == [sleeper.pid]


def test_a_process_that_ignores_the_first_signal_gets_the_next(tmp_path: Path) -> None:
    child = processes.spawn(STUBBORN, log=tmp_path / "log", env=os.environ, cwd=tmp_path)
    assert processes.wait_until(lambda: (tmp_path / "log").read_bytes() != b"", seconds=60)
    (tmp_path / "server.pid").write_text(str(child.pid))

    assert Tried(tmp_path).stop()

    assert child.wait() == -signal.SIGKILL


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", 137)])
def test_a_childs_exit_code_is_passed_on(tmp_path: Path, script: str, code: int) -> None:
    assert processes.run_foreground(["/bin/sh", "-c", script], env=os.environ, cwd=tmp_path) == code


def test_log_that_has_grown_is_set_aside_when_its_writer_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "LOG_LIMIT", 10)
    log, old = tmp_path / "web.log", tmp_path / "web.old.log"
    for content in ("a" * 20, "b" * 20):
        log.write_text(content)
        processes.spawn(["true"], log=log, env=os.environ, cwd=tmp_path).wait()

    assert (log.read_text(), old.read_text()) == ("", "b" * 20)
