"""Locks that a session holds: given back at the end, whatever became of the work."""

import psycopg
import pytest
from django.db import Error, connections

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import session_locks, sql

KEY = 4_711


@pytest.fixture(autouse=True)
def live(committed: None) -> None:
    """Real transactions; these locks outlast one that is rolled back."""


def is_free_for_another() -> bool:
    with psycopg.connect(**connections["default"].get_connection_params()) as other:
        ((is_free,),) = other.execute("SELECT pg_try_advisory_lock(%s)", [KEY]).fetchall()
        return bool(is_free)


def test_lock_is_held_in_the_block_alone() -> None:
    with environments.use(Environment.LIVE):
        with session_locks.locked(KEY) as is_mine:
            meanwhile = is_free_for_another()

        assert (is_mine, meanwhile) == (True, False)
        assert is_free_for_another()


def test_lock_that_cannot_be_given_back_ends_with_its_session() -> None:
    with environments.use(Environment.LIVE):
        with pytest.raises(Error), environments.atomic(), session_locks.locked(KEY), pytest.raises(Error):
            sql.query("SELECT 1 / 0")

        assert is_free_for_another()
