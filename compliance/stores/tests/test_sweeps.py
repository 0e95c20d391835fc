"""Sweeps: a row that fails is left for later, and what every row would meet ends the sweep."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, OperationalError, connections

from compliance.core import environments
from compliance.core.errors import Unavailable
from compliance.stores.sweeps import each
from compliance.tests.threads import in_thread
from tenancy.models import Tenant
from tenancy.tests.factories import make_tenant


def failing_at(bad: int, fail: Callable[[], object], done: list[int]) -> Callable[[int], int]:
    def work(row: int) -> int:
        if row == bad:
            fail()
        done.append(row)
        return row

    return work


def raise_value_error() -> None:
    raise ValueError("a secret of the row")


def raise_unavailable() -> None:
    raise Unavailable()


def insert_a_tenant_twice() -> None:
    with environments.atomic():
        Tenant.objects.create(id=make_tenant().id, name="twice")


def lose_the_connection() -> None:
    connection = connections[environments.current().alias]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")


def test_row_that_fails_is_postponed_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    postponed: list[int] = []

    total = each([1, 2, 3], failing_at(2, raise_value_error, done), postpone=postponed.append)

    assert (total, done, postponed) == (4, [1, 3], [2])
    assert "row 2 of a sweep failed" in caplog.text
    assert "ValueError in test_sweeps.raise_value_error" in caplog.text
    assert "a secret of the row" not in caplog.text


def test_row_that_the_database_refuses_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    assert each([1, 2, 3], failing_at(2, insert_a_tenant_twice, done)) == 4

    assert done == [1, 3]
    assert IntegrityError.__name__ in caplog.text


def test_unavailable_ends_the_sweep() -> None:
    done: list[int] = []
    postponed: list[int] = []

    with pytest.raises(Unavailable):
        each([1, 2, 3], failing_at(2, raise_unavailable, done), postpone=postponed.append)

    assert (done, postponed) == ([1], [])


def test_lost_connection_ends_the_sweep() -> None:
    done: list[int] = []
    postponed: list[int] = []

    def sweep() -> int:
        return each([1, 2, 3], failing_at(2, lose_the_connection, done), postpone=postponed.append)

    # The thread's connection is its own: the test's goes on.
    with ThreadPoolExecutor(1) as pool, pytest.raises(OperationalError):
        pool.submit(in_thread, sweep).result()

    assert (done, postponed) == ([1], [])
