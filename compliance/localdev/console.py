"""Output for the person at the terminal: steps with their seconds, and failures with a way out."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


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
    # A terminal shows the end over the beginning.
    is_terminal = sys.stderr.isatty()
    sys.stderr.write(f"  … {title}" + ("" if is_terminal else "\n"))
    sys.stderr.flush()
    started = time.monotonic()
    mark = "✗"
    try:
        yield
        mark = "✓"
    finally:
        start = "\r" if is_terminal else ""
        say(f"{start}  {mark} {title}  {time.monotonic() - started:.1f} s")


def complain(failure: StepFailed) -> None:
    """Print a failure and its hint."""
    say(f"\nFailed: {failure.message}\nWhat to do: {failure.hint}")
