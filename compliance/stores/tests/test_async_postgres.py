"""Reads from the event loop survive what happens to their connection."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from django.db import DataError, OperationalError, connections

from compliance.core.environments import Environment
from compliance.stores.async_postgres import AsyncReader, Query
from compliance.tests.owner import end_sessions

pytestmark = pytest.mark.usefixtures("committed")


def end_all() -> None:
    """End all sessions of the database; for a thread of its own."""
    end_sessions()
    connections.close_all()


def play(
    scene: Callable[[AsyncReader], Awaitable[None]], environment: Environment = Environment.LIVE
) -> None:
    async def run() -> None:
        reader = AsyncReader(environment)
        try:
            await scene(reader)
        finally:
            await reader.close()

    asyncio.run(run())


@pytest.mark.parametrize("environment", Environment)
def test_rows_are_those_of_the_environment(environment: Environment) -> None:
    async def scene(reader: AsyncReader) -> None:
        (row,) = await reader.rows(Query("SELECT current_database(), $1::int + 1", [41]))
        assert row == (connections[environment.alias].settings_dict["NAME"], 42)

    play(scene, environment)


def test_json_and_moments_are_read_as_python_has_them() -> None:
    async def scene(reader: AsyncReader) -> None:
        statement = "SELECT '{\"a\": [1]}'::jsonb, '2026-01-02T03:04:05.678+02'::timestamptz"
        ((value, moment),) = await reader.rows(Query(statement, []))
        assert (value, moment.isoformat()) == ({"a": [1]}, "2026-01-02T01:04:05.678000+00:00")

    play(scene)


def test_ended_session_is_replaced_and_nobody_notices() -> None:
    async def scene(reader: AsyncReader) -> None:
        await reader.rows(Query("SELECT 1", []))
        await asyncio.to_thread(end_all)
        assert await reader.rows(Query("SELECT 2", [])) == [(2,)]

    play(scene)


def test_refused_statement_is_a_django_error_and_the_connection_goes_on() -> None:
    async def scene(reader: AsyncReader) -> None:
        with pytest.raises(DataError):
            await reader.rows(Query("SELECT 1 / $1::int", [0]))
        assert await reader.rows(Query("SELECT 1", [])) == [(1,)]

    play(scene)


def test_absent_server_is_an_operational_error_and_heals() -> None:
    async def scene(reader: AsyncReader) -> None:
        await reader.rows(Query("SELECT 1", []))
        await asyncio.to_thread(end_all)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(connections.settings["default"], "PORT", 1)
            with pytest.raises(OperationalError):
                await reader.rows(Query("SELECT 1", []))
        assert await reader.rows(Query("SELECT 1", [])) == [(1,)]

    play(scene)
