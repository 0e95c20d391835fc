"""Questions to PostgreSQL from the event loop: their rows, their errors, and connections that die."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from django.db import DataError, OperationalError, connection, connections

from compliance.environments import Environment
from compliance.loop_sql import LoopQuery

pytestmark = pytest.mark.usefixtures("committed")


Scene = Callable[[LoopQuery, Callable[[], None]], Awaitable[None]]


def play(statement: str, scene: Scene) -> None:
    """The scene is given the question, and how to end every session of the database but the test's own."""
    connection.ensure_connection()
    # Django's connection is another one in the event loop, and refuses to be used there.
    own = connection.connection

    def end_sessions() -> None:
        own.execute(
            "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    async def whole() -> None:
        query = LoopQuery(Environment.LIVE, statement)
        try:
            await scene(query, end_sessions)
        finally:
            query.close()

    asyncio.run(whole())


def test_rows_are_typed_and_any_length_goes_through() -> None:
    async def scene(query: LoopQuery, end_sessions: Callable[[], None]) -> None:
        assert await query.rows(b"1", b"short") == [(1, "short", {"a": [1, None]})]
        # More than the kernel takes at once, both ways.
        assert await query.rows(b"3", b"x" * 5_000_000) == [
            (n, "x" * 5_000_000, {"a": [1, None]}) for n in (1, 2, 3)
        ]
        assert await query.rows(b"0", b"") == []

    play(
        """SELECT n::int, $2::text, '{"a": [1, null]}'::jsonb FROM generate_series(1, $1::int) AS n""", scene
    )


def test_error_is_djangos_and_the_connection_goes_on() -> None:
    async def scene(query: LoopQuery, end_sessions: Callable[[], None]) -> None:
        assert await query.rows(b"2") == [(5,)]
        link = query._link

        with pytest.raises(DataError):
            await query.rows(b"0")

        assert await query.rows(b"5") == [(2,)]
        assert query._link is link

    play("SELECT 10 / $1::int", scene)


def test_session_that_is_ended_between_questions_or_within_one_is_replaced() -> None:
    async def scene(query: LoopQuery, end_sessions: Callable[[], None]) -> None:
        assert await query.rows(b"0") == [("",)]
        for pause in (0.0, 0.05):
            end_sessions()
            await asyncio.sleep(pause)
            assert await query.rows(b"0") == [("",)]

        asked = asyncio.ensure_future(query.rows(b"0.5"))
        await asyncio.sleep(0.1)
        end_sessions()
        assert await asked == [("",)]

    play("SELECT pg_sleep($1::float8)::text", scene)


def test_absent_server_is_an_operational_error_at_once_and_is_asked_again_later() -> None:
    async def scene(query: LoopQuery, end_sessions: Callable[[], None]) -> None:
        assert await query.rows(b"1") == [(1,)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(connections.settings["default"], "PORT", 1)
            end_sessions()
            for _ in range(2):
                with pytest.raises(OperationalError):
                    await query.rows(b"1")

        assert await query.rows(b"2") == [(2,)]

    play("SELECT $1::int", scene)
