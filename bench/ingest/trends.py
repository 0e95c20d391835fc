"""How measured values move with time."""

from collections.abc import Sequence
from math import nan, sqrt

import numpy as np


def trend(values: Sequence[float], *, times: Sequence[float], beside: Sequence[float]) -> tuple[float, float]:
    """Return how much values grow in a unit of time while `beside` stays the same, and the standard error.

    The error holds for residuals that do not depend on each other.

    Least squares in two steps (theorem of Frisch, Waugh and Lovell): what `beside` explains is taken from
    values and times, then the rest of the one is fitted to the rest of the other. Both are nan of three
    values or fewer, and where time and `beside` say the same.
    """
    others = np.column_stack([beside, np.ones(len(beside))])
    times_left, values_left = (
        column - others @ np.linalg.lstsq(others, column)[0] for column in (np.array(times), np.array(values))
    )
    spread = times_left @ times_left
    if len(values) <= 3 or spread < 1e-12:
        return nan, nan
    growth = times_left @ values_left / spread
    rest = values_left - growth * times_left
    return float(growth), sqrt(rest @ rest / (len(values) - 3) / spread)
