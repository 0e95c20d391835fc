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


def processor_ticks() -> tuple[int, int]:
    """Return the ticks of all cores since boot: those that the hypervisor took while we had work, and all."""
    fields = (PROC / "stat").read_text().split("\n", 1)[0].split()
    ticks = [int(text) for text in fields[1:9]]  # what follows is contained in these
    return ticks[-1], sum(ticks)


def described(*, load: float | None = None) -> str:
    """One line about the machine; `load` is its load at the start, by default that of now."""
    load = load_average() if load is None else load
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


def worked_seconds(pid: int) -> float:
    """Processor time that a process has had, its own and the kernel's; 0 when it is gone."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_seconds(pid: int) -> float:
    """Processor time that a process and all that it started have had."""
    return sum(map(worked_seconds, descendants(pid)))


def descendants(pid: int) -> list[int]:
    """The process, its children, and theirs."""
    try:
        found = children(pid)
    except OSError:
        found = []
    return [pid, *(one for child in found for one in descendants(child))]


def spent_seconds(pid: int) -> float:
    """Processor time of a process and of its children that have ended; 0 when it is gone."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def family_spent_seconds(pid: int) -> float:
    """As `family_seconds()`, with the children that have ended."""
    return sum(map(spent_seconds, descendants(pid)))


def run_seconds(pid: int) -> float:
    """Processor time of a process of one thread, exactly; 0 when it is gone.

    Of several threads, /proc gives the first's alone.
    """
    try:
        return int((PROC / str(pid) / "schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def resident_mb(pid: int) -> float:
    """Memory of a process that is in RAM, in MB; 0 when it is gone."""
    return _status_mb(pid, "VmRSS:")


def own_mb(pid: int) -> float:
    """Memory of a process in RAM that no file or shared buffer backs, in MB; 0 when it is gone."""
    return _status_mb(pid, "RssAnon:")


def command_of(pid: int) -> str:
    """The command line of a process; empty when it is gone."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _status_mb(pid: int, name: str) -> float:
    try:
        lines = (PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(name)), 0.0)
