"""Output for the person at the terminal: steps with their seconds, and failures with a way out."""

import errno
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HELP = """\
./run                     set up, start the service, play the demo, stay up until Ctrl-C
./run --detach            the same, but return after the demo and leave the service running
./run --no-demo           either of them without the demo
./run stop                stop everything            ./run status   show all parts (exit code 0: all are up)
./run env                 print addresses, keys and log-ins as shell exports:  eval "$(./run env)"
./run demo                play the demo in the test environment (or --environment live); exit code 0 or 1
./run manage ARGUMENTS    run manage.py with the service's environment (starts the data servers if needed)
./run exec COMMAND …      run any program with that environment and .venv on PATH
./run bench NAME …        measure: `./run bench ingest --help`
./run attack …            attack a service of its own, on loopback only: `./run attack --help`
./run release …           make a release in dist/ (docs/deployment.md): `./run release --help`

PORT=8080 ./run chooses the web server's port (8000, or a free one). LOCAL_DIR moves the data from .local/.
DATABASE_URL with TEST_DATABASE_URL, REDIS_URL and PKCS11_MODULE replace the embedded servers.
"""


class StepFailed(Exception):
    """A step that can't go on; `hint` says what to do."""

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def say(text: str = "") -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@contextmanager
def step(title: str) -> Iterator[None]:
    """Print `title` when the block begins, and at its end with its seconds and whether it succeeded."""
    say(f"  … {title}")
    started, mark = time.monotonic(), "✗"
    try:
        yield
        mark = "✓"
    finally:
        say(f"  {mark} {title}  {time.monotonic() - started:.1f} s")


def exit_code(work: Callable[[], int | None]) -> int:
    """Do the work, complain of what failed, and return the exit code: 1, or 130 on Ctrl-C."""
    try:
        return work() or 0
    except StepFailed as failure:
        complain(failure)
        return 1
    except OSError as error:
        if error.errno not in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise
        hint = "use a checkout of your own, or set LOCAL_DIR to a folder of your own"
        complain(StepFailed(f"{error.filename} cannot be used: {error.strerror}", hint=hint))
        return 1
    except KeyboardInterrupt:
        return 130


def complain(failure: StepFailed) -> None:
    """Print a failure and its hint."""
    say(f"\nFailed: {failure.message}\nWhat to do: {failure.hint}")
