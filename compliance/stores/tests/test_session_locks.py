"""Locks that a session holds: given back at the end, whatever became of the work."""

from uuid import UUID

import psycopg
import pytest
from django.db import Error, connections

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import session_locks, sql

ROW = UUID("0193d2a4-7b5e-7cc3-98c4-dc0c0c07398f")


@pytest.fixture(autouse=True)
def live(committed: None) -> None:
    """Real transactions; these locks outlast one that is rolled back."""


def is_free_for_another() -> bool:
    key = int.from_bytes(ROW.bytes[8:], signed=True)
    with psycopg.connect(**connections["default"].get_connection_params()) as other:
        ((is_free,),) = other.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchall()
        return bool(is_free)


def test_lock_is_held_in_the_block_alone() -> None:
    with environments.use(Environment.LIVE):
        with session_locks.locked(ROW) as is_mine:
            meanwhile = is_free_for_another()

        assert (is_mine, meanwhile) == (True, False)
        assert is_free_for_another()


def test_lock_that_cannot_be_given_back_ends_with_its_session() -> None:
    with environments.use(Environment.LIVE):
        with pytest.raises(Error), environments.atomic(), session_locks.locked(ROW), pytest.raises(Error):
            sql.query("SELECT 1 / 0")

        assert is_free_for_another()
