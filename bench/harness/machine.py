"""The machine and its processes: what the figures depend on, and how much memory the servers hold."""

import os
import time
from pathlib import Path

PROC = Path("/proc")


def processor() -> str:
    """The processor's name as the kernel gives it."""
    for line in (PROC / "cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown processor"


def cores() -> int:
    """The processors this process may run on."""
    return len(os.sched_getaffinity(0))


def loops_per_second() -> float:
    """A fixed piece of Python, the best of five: tells a fast machine, or a busy one, from a slow one."""
    best = 0.0
    for _ in range(5):
        began = time.perf_counter()
        total = 0
        for number in range(1_000_000):
            total += number & 7
        best = max(best, 1_000_000 / (time.perf_counter() - began))
    return best


def described() -> str:
    """One line about the machine; compare runs by its loops a second."""
    load = load_average()
    loops = loops_per_second() / 1e6
    return (
        f"{processor()}, {cores()} cores, load {load:.1f} at the start, "
        f"{loops:.1f} million loops a second (plain Python)"
    )


def load_average() -> float:
    """Processes running or waiting to, over the last minute."""
    return os.getloadavg()[0]


def children(pid: int) -> list[int]:
    """The processes that `pid` started and that still run."""
    found = []
    for folder in (PROC / str(pid) / "task").iterdir():
        try:
            found += [int(text) for text in (folder / "children").read_text().split()]
        except OSError:
            continue
    return sorted(found)


def command_of(pid: int) -> str:
    """The command line of a process; empty when it is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
