"""How the C library hands out memory in a process of many threads: a web worker, the worker of tasks."""

import ctypes
from typing import Final

# From glibc's malloc.h
M_MMAP_THRESHOLD: Final = -3
M_ARENA_MAX: Final = -8
ARENAS: Final = 2
LARGE: Final = 1 << 20
"""Bytes from which a piece is asked of the kernel by itself, and given back when it is freed."""


def spare_memory() -> bool:
    """Have threads share arenas, and large pieces never stay in one; whether the C library took both.

    An arena for each thread keeps what that thread's largest batch once needed: some 20 MB a process.
    A C library other than glibc is left as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_ARENA_MAX, ARENAS)) and bool(mallopt(M_MMAP_THRESHOLD, LARGE))
