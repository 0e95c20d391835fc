"""What the person at the terminal sees: steps with their seconds, and failures that say what to do."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

# The monotonic clock, in seconds, when `./run` or `./test` was called; it goes on across our processes.
STARTED = "LOCALDEV_STARTED"


def seconds_since_call() -> float:
    """Seconds since the person called the command, installation included."""
    now = time.monotonic()
    return now - float(os.environ.get(STARTED, now))


class StepFailed(Exception):
    """A step that can't go on; `hint` tells the person what to do about it."""

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
    """Show `title` when the block ends, with its seconds and whether it worked."""
    started = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"  ✗ {title}  {time.monotonic() - started:.1f} s")
        raise
    say(f"  ✓ {title}  {time.monotonic() - started:.1f} s")


def complain(failure: StepFailed) -> None:
    """Show a failure and its way out."""
    say()
    say(f"Failed: {failure.message}")
    say(f"What to do: {failure.hint}")
