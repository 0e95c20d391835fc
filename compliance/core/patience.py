"""How long this process, or a block of it, waits for a database's answer."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

BEYOND_SECONDS: Final = 5.0
"""So much longer than the server's own `statement_timeout`; a server that has not answered by then hangs."""
SERVING_SECONDS: Final = 30.0 + BEYOND_SECONDS
"""Of processes that serve requests."""

_here: ContextVar[float | None] = ContextVar("patience", default=None)


class _Process:
    limit: float | None = None


def limit_process(seconds: float | None) -> None:
    """Wait so long for each answer in this process; None, as at the start, is for as long as it takes."""
    _Process.limit = seconds


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Wait so long for each answer inside the block."""
    token = _here.set(seconds)
    try:
        yield
    finally:
        _here.reset(token)


def limit() -> float | None:
    """Return the seconds that an answer is waited for; None is without an end."""
    here = _here.get()
    return _Process.limit if here is None else here
