"""Questions to PostgreSQL from the event loop: their rows, their errors, and connections that die."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from django.db import DataError, OperationalError, ProgrammingError, connection, connections

from compliance import loop_sql
from compliance.environments import Environment
from compliance.loop_sql import MOST_PREPARED, LoopConnection

pytestmark = pytest.mark.usefixtures("committed")


Scene = Callable[[LoopConnection, Callable[[], None]], Awaitable[None]]


def play(scene: Scene) -> None:
    """The scene is given a connection, and how to end every session of the database but the test's own."""
    connection.ensure_connection()
    # Django's connection is another one in the event loop, and refuses to be used there.
    own = connection.connection

    def end_sessions() -> None:
        own.execute(
            "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
        )

    async def whole() -> None:
        database = LoopConnection(Environment.LIVE)
        try:
            await scene(database, end_sessions)
        finally:
            database.close()

    asyncio.run(whole())


def test_rows_are_typed_and_any_length_goes_through() -> None:
    statement = """SELECT n::int, $2::text, '{"a": [1, null]}'::jsonb FROM generate_series(1, $1::int) AS n"""

    async def scene(database: LoopConnection, end_sessions: Callable[[], None]) -> None:
        assert await database.rows(statement, b"1", b"short") == [(1, "short", {"a": [1, None]})]
        # More than the kernel takes at once, both ways.
        assert await database.rows(statement, b"3", b"x" * 5_000_000) == [
            (n, "x" * 5_000_000, {"a": [1, None]}) for n in (1, 2, 3)
        ]
        assert await database.rows(statement, b"0", b"") == []

    play(scene)


def test_error_is_djangos_and_the_connection_goes_on() -> None:
    statement = "SELECT 10 / $1::int"

    async def scene(database: LoopConnection, end_sessions: Callable[[], None]) -> None:
        assert await database.rows(statement, b"2") == [(5,)]
        link = database._link

        with pytest.raises(DataError):
            await database.rows(statement, b"0")

        assert await database.rows(statement, b"5") == [(2,)]
        assert database._link is link

    play(scene)


def test_session_that_is_ended_between_questions_or_within_one_is_replaced() -> None:
    statement = "SELECT pg_sleep($1::float8)::text"

    async def scene(database: LoopConnection, end_sessions: Callable[[], None]) -> None:
        assert await database.rows(statement, b"0") == [("",)]
        for pause in (0.0, 0.05):
            end_sessions()
            await asyncio.sleep(pause)
            assert await database.rows(statement, b"0") == [("",)]

        asked = asyncio.ensure_future(database.rows(statement, b"0.5"))
        await asyncio.sleep(0.1)
        end_sessions()
        assert await asked == [("",)]

    play(scene)


def test_absent_server_is_an_operational_error_at_once_and_is_asked_again_later() -> None:
    statement = "SELECT $1::int"

    async def scene(database: LoopConnection, end_sessions: Callable[[], None]) -> None:
        assert await database.rows(statement, b"1") == [(1,)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(connections.settings["default"], "PORT", 1)
            end_sessions()
            for _ in range(2):
                with pytest.raises(OperationalError):
                    await database.rows(statement, b"1")

        assert await database.rows(statement, b"2") == [(2,)]

    play(scene)


def test_statements_asked_last_stay_prepared_and_others_are_prepared_again() -> None:
    async def scene(database: LoopConnection, end_sessions: Callable[[], None]) -> None:
        statements = [f"SELECT {number} + $1::int" for number in range(MOST_PREPARED + 5)]
        for number, statement in enumerate(statements):
            assert await database.rows(statement, b"1") == [(number + 1,)]
            assert await database.rows(statements[0], b"2") == [(2,)]

        assert await database.rows(statements[1], b"3") == [(4,)]
        ((known,),) = await database.rows("SELECT count(*)::int FROM pg_prepared_statements")
        assert known == MOST_PREPARED

    play(scene)


def test_statement_that_is_refused_leaves_the_connection_to_others() -> None:
    async def scene(database: LoopConnection, end_sessions: Callable[[], None]) -> None:
        assert await database.rows("SELECT 1") == [(1,)]
        link = database._link

        for _ in range(2):
            with pytest.raises(ProgrammingError):
                await database.rows("SELECT nothing")

        assert await database.rows("SELECT 2") == [(2,)]
        assert database._link is link

    play(scene)


def test_rows_that_are_unpacked_in_several_turns_are_all_there_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_sql, "HOLD_SECONDS", -1.0)

    async def scene(database: LoopConnection, end_sessions: Callable[[], None]) -> None:
        rows = await database.rows("SELECT n FROM generate_series(1, 100) AS n")
        assert rows == [(number,) for number in range(1, 101)]

    play(scene)
