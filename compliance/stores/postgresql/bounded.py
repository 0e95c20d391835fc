"""Connections that wait for the server's answer only so long.

`statement_timeout` is the server's own, and TCP is content while the other kernel confirms what it is sent:
of a server that hangs (a stopped machine, a disk that blocks) nothing else would tell.
"""

from typing import Any, Final

import psycopg
from psycopg.errors import _WaitTimeout

from compliance.core import patience

LOOP_SECONDS: Final = 10.0
"""Of an event loop's reads, for which others wait; as long as TCP waits for a confirmation."""
INTERVAL: Final = 0.1
"""Seconds after which psycopg looks for signals."""


class HasNotAnswered(psycopg.OperationalError):
    """The server took longer than whoever asks waits; the connection is closed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"PostgreSQL did not answer within {seconds:g} s")


class BoundedConnection(psycopg.Connection[Any]):
    """Raises HasNotAnswered where an answer takes longer than `patience.limit()`."""

    def wait(self, gen: Any, interval: float = INTERVAL, timeout: float | None = None) -> Any:
        if timeout is not None or (longest := patience.limit()) is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, longest)
        except _WaitTimeout as error:
            self.pgconn.finish()
            raise HasNotAnswered(longest) from error


class BoundedAsyncConnection(psycopg.AsyncConnection[Any]):
    """Raises HasNotAnswered where an answer takes longer than LOOP_SECONDS."""

    async def wait(
        self,
        gen: Any,
        interval: float = INTERVAL,
        timeout: float | None = None,  # noqa: ASYNC109  (psycopg's signature)
    ) -> Any:
        if timeout is not None:
            return await super().wait(gen, interval, timeout)
        try:
            return await super().wait(gen, interval, LOOP_SECONDS)
        except _WaitTimeout as error:
            self.pgconn.finish()
            raise HasNotAnswered(LOOP_SECONDS) from error
