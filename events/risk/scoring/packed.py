"""Digests and doubles (little-endian) packed into bytes, which are replaced and never changed in place.

`packed.pxd` has the same functions in C, for the compiled scorer.
"""

from functools import lru_cache
from struct import Struct

NAME = NUMBER = 8  # bytes of a digest, and of a double
_double = Struct("<d")


@lru_cache(maxsize=2048)
def _doubles(count: int) -> Struct:
    return Struct(f"<{count}d")


def pack(values: tuple[float, ...]) -> bytes:
    return _doubles(len(values)).pack(*values)


def unpack(doubles: bytes) -> list[float]:
    return list(_doubles(len(doubles) // NUMBER).unpack(doubles))


def find(names: bytes, name: bytes) -> int:
    """Return the offset of a digest among digests, -1 if it isn't there."""
    at = names.find(name)
    while at >= 0 and at % NAME:  # the end of one and the start of the next may look like it
        at = names.find(name, at + 1)
    return at


def double_at(doubles: bytes, at: int) -> float:
    value: float = _double.unpack_from(doubles, at)[0]
    return value


def least(doubles: bytes) -> int:
    """Return the offset of the least double, the first among equals."""
    values = unpack(doubles)
    return values.index(min(values)) * NUMBER


def without(packed: bytes, at: int) -> bytes:
    """Return a copy without the digest or double at an offset."""
    return packed[:at] + packed[at + NAME :]


def with_double(doubles: bytes, at: int, value: float) -> bytes:
    """Return a copy with another double at an offset; at the end, with one more."""
    return b"".join((doubles[:at], _double.pack(value), doubles[at + NUMBER :]))
