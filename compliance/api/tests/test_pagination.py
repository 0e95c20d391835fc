"""Cursors are ISO 8601 date-times and exact positions."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from compliance.api.pagination import Cursor, read_limit
from compliance.core.errors import Invalid

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
AT = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)


MOMENTS = st.integers(0, 200 * 365 * 86_400 * 10**6).map(lambda us: EPOCH + timedelta(microseconds=us))


@given(MOMENTS, st.uuids(version=4))
def test_cursor_survives_its_text(at: datetime, row_id: UUID) -> None:
    cursor = Cursor(at, row_id)

    assert Cursor.parse(str(cursor)) == cursor


@given(st.uuids(version=4), st.uuids(version=4))
def test_text_sorts_as_the_position_does(one: UUID, other: UUID) -> None:
    assert (str(Cursor(AT, one)) < str(Cursor(AT, other))) == (one.int < other.int)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-03-04T05:06:07.000089Z", AT),
        ("2026-03-04T06:06:07.000089+01:00", AT),
        ("2026-03-04T06:06:07.000089 01:00", AT),
        ("2026-03-04t05:06:07.000089z", AT),
        ("2026-03-04", datetime(2026, 3, 4, tzinfo=UTC)),
        ("2026-03-04T05:06:07", AT.replace(microsecond=0)),
        ("2026-03-04T05:06:07.5Z", AT.replace(microsecond=500_000)),
    ],
)
def test_plain_date_times_are_positions(text: str, at: datetime) -> None:
    assert Cursor.parse(text) == Cursor(at)


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-13-01T00:00:00Z", "1700000000", "2026-01-01T00:00:00+99:00", "0000-01-01", "९" * 10],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        Cursor.parse(text)


@pytest.mark.parametrize(("text", "limit"), [(None, 50), ("1", 1), ("100", 100), ("5000", 100)])
def test_limit_is_capped(text: str | None, limit: int) -> None:
    assert read_limit({} if text is None else {"limit": text}) == limit


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "ten", "1e3", "٣"])
def test_other_limits_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        read_limit({"limit": text})
