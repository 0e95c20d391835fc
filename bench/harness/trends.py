"""How measured values move with time."""

from collections.abc import Sequence
from math import nan, sqrt

import numpy as np


def trend(values: Sequence[float], *, times: Sequence[float], beside: Sequence[float]) -> tuple[float, float]:
    """Return how much values grow in a unit of time while `beside` stays the same, and the standard error.

    Least squares in two steps (theorem of Frisch, Waugh and Lovell): what `beside` explains is taken from
    values and times, then the rest of the one is fitted to the rest of the other. Both are nan of three
    values or fewer, and where time and `beside` say the same.
    """
    others = np.column_stack([beside, np.ones(len(beside))])
    late, high = (
        column - others @ np.linalg.lstsq(others, column)[0] for column in (np.array(times), np.array(values))
    )
    spread = late @ late
    if len(values) <= 3 or spread < 1e-12:
        return nan, nan
    growth = late @ high / spread
    rest = high - growth * late
    return float(growth), sqrt(rest @ rest / (len(values) - 3) / spread)
