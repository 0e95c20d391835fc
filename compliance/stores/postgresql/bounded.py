"""Connections that wait for the server's answer only so long.

Nothing else shows that a server hangs (its process is stopped, its disk blocks): `statement_timeout` is
enforced by the server itself, and TCP sees no fault while the server's kernel confirms what is sent.
"""

from typing import Any, Final

import psycopg
from psycopg.errors import _WaitTimeout
from psycopg.pq.abc import PGconn

from compliance.core import environments

LOOP_SECONDS: Final = 10.0
"""How long an event loop's reads wait, and others behind them; TCP waits as long for a confirmation."""
INTERVAL: Final = 0.1
"""Seconds after which psycopg looks for signals."""


class HasNotAnswered(psycopg.OperationalError):
    """The server did not answer in time; the connection is closed."""


def is_of_hung_server(error: BaseException) -> bool:
    """Return whether the server of this error, psycopg's or Django's, hangs; another try waits as long."""
    return isinstance(error, HasNotAnswered) or isinstance(error.__cause__, HasNotAnswered)


class BoundedConnection(psycopg.Connection[Any]):
    """Raises HasNotAnswered where an answer takes longer than `environments.answer_limit()`."""

    def wait(self, gen: Any, interval: float = INTERVAL, timeout: float | None = None) -> Any:
        if timeout is not None or (longest := environments.answer_limit()) is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, longest)
        except _WaitTimeout as error:
            raise _given_up(self.pgconn, longest) from error


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
            raise _given_up(self.pgconn, LOOP_SECONDS) from error


def _given_up(connection: PGconn, seconds: float) -> HasNotAnswered:
    """Close the connection, which may answer the next statement with this one's rows; return the error."""
    connection.finish()
    return HasNotAnswered(f"PostgreSQL did not answer within {seconds:g} s")
