"""How a process that serves requests collects garbage; a benchmark of such code does the same."""

import gc
from typing import Final

THRESHOLDS: Final = (20_000, 10, 5)
"""More than the objects of a batch or two, which are gone by themselves once it is answered."""


def spare_garbage_collection() -> None:
    """Leave alone what was loaded at the start, and look at the rest seldom: requests leave few cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
