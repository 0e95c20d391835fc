"""Waiting for what other processes and threads bring about."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

DEATH_SECONDS = 30.0


class Record(NamedTuple):
    """One process, `started` clock ticks since boot: another that gets its pid later differs."""

    pid: int
    started: int


def record(pid: int) -> Record | None:
    """Return the record of a live process; None if it has ended or is a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else Record(pid, int(fields[19]))


def is_alive(process: Record) -> bool:
    return record(process.pid) == process


def eventually(holds: Callable[[], bool], *, seconds: float = 30.0) -> bool:
    """Tell whether `holds` comes true within `seconds`, which a busy machine may need; asked every 20 ms."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def kill(*pids: int) -> None:
    """`kill -9`; returns once these processes and those that they started are gone.

    A signal is delivered when its process next runs, and the sessions of a killed PostgreSQL end by
    themselves a little later: until then they answer as if nothing had happened.
    """
    condemned = [known for pid in (*pids, *_children(*pids)) if (known := record(pid))]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert eventually(lambda: not any(map(is_alive, condemned)), seconds=DEATH_SECONDS), condemned


def _children(*pids: int) -> list[int]:
    found: list[int] = []
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found
