"""The service is away while processes report a thousand events a second and end, cleanly and by `kill -9`."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import pytest

import agentid
from compliance.tests.waiting import eventually
from tests.conftest import MakeReporter, Reported
from tests.served import Service

pytestmark = [pytest.mark.slow, pytest.mark.drill]

RATE = 1_000  # events a second
SECONDS_EACH = 5.0
OUTAGE_SECONDS = 20.0
MOST_MEMORY = 32 * 1024 * 1024  # bytes: twice what may wait in memory
SCRIPT = Path(__file__).with_name("reporting_alone.py")


@dataclass
class Life:
    """A reporting process, and what it said of itself."""

    process: "subprocess.Popen[str]"
    first: int
    lines: list[tuple[int, ...]] = field(default_factory=list)

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.lines.append(tuple(map(int, line.split())))

    @property
    def reported(self) -> int:
        return self.lines[-1][0] if self.lines else 0

    @property
    def written(self) -> int:
        return self.lines[-1][1] if self.lines else 0

    @property
    def memory(self) -> int:
        return self.lines[-1][2]

    def end(self) -> None:
        """Let it come to its end: the reporter flushes for at most five seconds."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(30) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def life(service: Service, reported: Reported, spool: Path, *, first: int) -> Iterator[Life]:
    command = [sys.executable, str(SCRIPT), service.address, reported.api_key, str(reported.agent.id)]
    with subprocess.Popen(
        [*command, str(spool), str(first), str(RATE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(agentid.__file__).parents[1])},
    ) as process:
        found = Life(process, first)
        listener = Thread(target=found.listen)
        listener.start()
        try:
            yield found
        finally:
            process.kill()
            listener.join()


def test_outage_with_processes_that_end_loses_and_doubles_nothing(
    service: Service, reported: Reported, make_reporter: MakeReporter, tmp_path: Path
) -> None:
    spool, lives = tmp_path / "spool", list[Life]()

    def live(number: int, *, is_killed: bool, at_once: int) -> None:
        with life(service, reported, spool, first=number * 1_000_000) as one:
            lives.append(one)
            assert eventually(lambda: one.reported >= at_once, seconds=120)
            one.kill() if is_killed else one.end()

    events_each = int(RATE * SECONDS_EACH)
    began = time.monotonic()
    live(0, is_killed=True, at_once=events_each)  # the service is up
    with life(service, reported, spool, first=1_000_000) as one:
        lives.append(one)
        assert eventually(lambda: one.reported >= RATE, seconds=60)
        service.kill()  # in the middle of it
        away = time.monotonic()
        assert eventually(lambda: one.reported >= events_each, seconds=60)
        one.kill()
    half = int(RATE * OUTAGE_SECONDS / 2)
    live(2, is_killed=False, at_once=half)
    live(3, is_killed=True, at_once=half)
    outage = time.monotonic() - away
    service.start()
    live(4, is_killed=True, at_once=events_each)  # it sends what the others left; killed in that
    live(5, is_killed=False, at_once=events_each)
    ended = time.monotonic()
    last = make_reporter(service.address)
    last.flush(0)  # starts it
    assert eventually(lambda: not _waits(spool), seconds=600), last.statistics()

    stored = Counter(reported.numbers())
    assert [number for number, times in stored.items() if times > 1] == []
    for one in lives:
        promised = range(one.first, one.first + one.written)
        assert [number for number in promised if number not in stored] == []
    assert max(one.memory for one in lives) < MOST_MEMORY
    assert outage >= OUTAGE_SECONDS
    clean = lives[2]
    assert sum(number // 1_000_000 == 2 for number in stored) >= clean.reported
    print(  # noqa: T201
        f"{sum(one.reported for one in lives)} reported by 6 processes in {ended - began:.0f} s, "
        f"the service away for {outage:.0f} s, "
        f"{sum(one.written for one in lives)} written, {len(stored)} stored, "
        f"peak memory {max(one.memory for one in lives) / 2**20:.1f} MiB"
    )


def _waits(spool: Path) -> bool:
    return any(spool.rglob("*.ndjson"))
