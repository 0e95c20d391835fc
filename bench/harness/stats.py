"""Medians, percentiles and gaps of measured values."""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, nan


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of the ascending `ordered` don't exceed, or nan."""
    if not ordered:
        return nan
    return ordered[max(0, ceil(share * len(ordered)) - 1)]


def median(values: Sequence[float]) -> float:
    """The middle value, the mean of both where there are two; nan of none."""
    if not values:
        return nan
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def longest_gap(times: list[float], *, after: float, until: float) -> float:
    """The longest time without a good answer from `after` on, up to `until`."""
    marks = [after, *(at for at in times if after < at < until), until]
    return max(later - earlier for earlier, later in pairwise(marks))
