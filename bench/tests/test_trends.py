"""Trends with an effect beside time taken out."""

from math import isnan

import pytest

from bench.ingest.trends import trend


def test_trend_and_its_error() -> None:
    # The columns are at right angles: slopes 2 and 3, residuals 0.5, -1.5, 1.5, -0.5, one degree of freedom.
    values = [0.5, 3.5, 8.5, 5.5]

    assert trend(values, times=[0, 1, 2, 3], beside=[0, 1, 1, 0]) == pytest.approx((2.0, 1.0))


def test_constant_beside_changes_nothing() -> None:
    assert trend([1, 3, 5, 7], times=[0, 1, 2, 3], beside=[4, 4, 4, 4]) == pytest.approx((2.0, 0.0), abs=1e-9)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_three_values_tell_nothing(count: int) -> None:
    values = list(map(float, range(count)))

    assert all(map(isnan, trend(values, times=values, beside=[1.0] * count)))


def test_time_that_goes_with_the_other_tells_nothing() -> None:
    assert all(map(isnan, trend([1, 2, 4, 7], times=[0, 1, 2, 3], beside=[5, 7, 9, 11])))
