"""Waiting for what other processes and threads bring about."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], bool], *, seconds: float = 10.0) -> bool:
    """Whether `holds` comes true within `seconds`; asked every 20 ms."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
