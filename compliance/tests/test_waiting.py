"""What the drills stand on: nobody answers any more when `kill()` returns."""

import subprocess
from collections.abc import Iterator

import pytest

from compliance.localdev.servers import processes
from compliance.tests.waiting import eventually, kill

# Tells its child's id, then waits; the child goes on for a while after its parent's death.
SCRIPT = "sleep 0.7 & echo $!; wait"


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(["/bin/sh", "-c", SCRIPT], stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_killed_process_and_its_children_are_gone(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    child = processes.record(int(parent.stdout.readline()))
    assert child is not None
    assert processes.is_alive(child)

    kill(parent.pid)

    assert parent.wait() == -9
    assert not processes.is_alive(child)


def test_process_that_is_gone_already_is_no_failure(parent: subprocess.Popen[str]) -> None:
    parent.kill()
    parent.wait()
    assert eventually(lambda: processes.record(parent.pid) is None)

    kill(parent.pid)
