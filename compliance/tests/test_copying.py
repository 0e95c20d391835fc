"""COPY with a statement beside it: both or neither, on any connection."""

from collections.abc import Iterator
from contextlib import closing
from struct import pack

import pytest
from django.db import DataError, IntegrityError, OperationalError, connection, connections, transaction

from compliance import environments, sql
from compliance.copying import Call, Statement, copy_in
from compliance.tests.owner import execute_as_owner, quoted_service_role

pytestmark = pytest.mark.usefixtures("committed")

COPY = "COPY copied (number) FROM STDIN (FORMAT BINARY)"
COUNT = Statement(
    "count_up", ("int4[]", "text"), "UPDATE counted SET count = count + cardinality($1), name = $2"
)


@pytest.fixture(autouse=True)
def _tables(committed: None) -> Iterator[None]:
    execute_as_owner(
        "CREATE TABLE copied (number int4 PRIMARY KEY CHECK (number < 100))",
        "CREATE TABLE counted AS SELECT 0 AS count, '' AS name",
        f"GRANT SELECT, INSERT, UPDATE ON copied, counted TO {quoted_service_role()}",
    )
    try:
        yield
    finally:
        execute_as_owner("DROP TABLE copied, counted")


def rows(*numbers: int) -> bytes:
    packed = b"".join(pack("!hii", 1, 4, number) for number in numbers)
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + packed + b"\xff\xff"


def counting(*numbers: int, name: str = "someone") -> Call:
    return Call(COUNT, (sql.array(numbers), name))


def stored() -> tuple[list[int], int]:
    numbers = [row[0] for row in sql.query("SELECT number FROM copied ORDER BY number")]
    return numbers, int(sql.query("SELECT count FROM counted")[0][0])


def test_rows_and_what_stands_beside_them_are_stored() -> None:
    copy_in(COPY, rows(1, 2), beside=counting(1, 2))
    copy_in(COPY, rows(3))
    copy_in(COPY, rows(4), beside=counting(4))

    assert stored() == ([1, 2, 3, 4], 3)


@pytest.mark.parametrize("numbers", [(5, 5), (5, 100)])
def test_refused_row_undoes_both(numbers: tuple[int, int]) -> None:
    with pytest.raises(IntegrityError):
        copy_in(COPY, rows(*numbers), beside=counting(*numbers))

    assert stored() == ([], 0)
    copy_in(COPY, rows(6), beside=counting(6))
    assert stored() == ([6], 1)


def test_refused_statement_leaves_no_row() -> None:
    with pytest.raises(DataError):
        copy_in(COPY, rows(1), beside=Call(COUNT, ("{none}", "someone")))

    assert stored() == ([], 0)


def test_torn_data_is_refused() -> None:
    with pytest.raises(DataError):
        copy_in(COPY, rows(1, 2)[:-5])

    assert stored() == ([], 0)


def test_statement_that_the_server_forgot_is_prepared_again() -> None:
    copy_in(COPY, rows(1), beside=counting(1))
    sql.execute("DEALLOCATE ALL")

    copy_in(COPY, rows(2), beside=counting(2))

    assert stored() == ([1, 2], 2)


def test_in_a_transaction_both_are_the_callers() -> None:
    with environments.atomic():
        copy_in(COPY, rows(1), beside=counting(1))
        assert stored() == ([1], 1)
        transaction.set_rollback(True)
    assert stored() == ([], 0)

    with environments.atomic():
        copy_in(COPY, rows(2), beside=counting(2))
        copy_in(COPY, rows(3))
    assert stored() == ([2, 3], 1)


def test_savepoint_saves_a_transaction_from_a_refused_row() -> None:
    with environments.atomic():
        copy_in(COPY, rows(1), beside=counting(1))
        with pytest.raises(IntegrityError), environments.atomic():
            copy_in(COPY, rows(1), beside=counting(1))
    assert stored() == ([1], 1)


def test_many_rows_are_taken_in() -> None:
    execute_as_owner("ALTER TABLE copied DROP CONSTRAINT copied_number_check")

    copy_in(COPY, rows(*range(200_000)), beside=counting(1))

    numbers, count = stored()
    assert (len(numbers), count) == (200_000, 1)


def test_dead_connection_is_an_operational_error_and_the_next_one_serves() -> None:
    copy_in(COPY, rows(1))
    other = connections.create_connection("default")
    with closing(other), other.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 20000)", [connection.connection.info.backend_pid])

    with pytest.raises(OperationalError):
        copy_in(COPY, rows(2), beside=counting(2))
    connection.close_if_unusable_or_obsolete()
    copy_in(COPY, rows(3), beside=counting(3))

    assert stored() == ([1, 3], 1)


def test_literal_with_a_quote_is_refused() -> None:
    with pytest.raises(ValueError, match="quote"):
        copy_in(COPY, rows(1), beside=counting(1, name="O'Neill"))

    assert stored() == ([], 0)
