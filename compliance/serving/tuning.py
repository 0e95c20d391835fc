"""How a process that serves requests collects garbage and hands out memory; benchmarks do the same."""

import ctypes
import gc
from typing import Final

THRESHOLDS: Final = (20_000, 10, 5)
"""More than the objects of a batch or two, which are gone by themselves once it is answered."""
# From glibc's malloc.h
M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
ARENAS: Final = 2
LARGE: Final = 1 << 20
"""Bytes from which a piece is asked of the kernel by itself, and given back when it is freed."""


def spare_garbage_collection() -> None:
    """Leave alone what was loaded at the start, and look at the rest seldom: requests leave few cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


def spare_memory() -> bool:
    """Have threads share glibc's arenas, which else keep each one's largest batch; return whether it did."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(M_ARENA_MAX, ARENAS) and mallopt(M_MMAP_THRESHOLD, LARGE))
