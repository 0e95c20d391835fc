"""Digests and doubles (little-endian) packed into bytes.

A table, which is replaced and never changed, is some digests and then a double for each; counts are doubles,
changed in place. `packed.pxd` has the same functions in C, for the compiled scorer.
"""

from functools import lru_cache
from math import isfinite
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


pack_numbers, numbers_at = pack, _doubles(23).unpack_from  # of a state, which has so many


def are_finite(data: bytes, start: int, end: int) -> bool:
    """Return whether none of the doubles between two offsets is infinite or no number."""
    return all(map(isfinite, unpack(data[start:end])))


def part(data: bytes, start: int, end: int) -> bytes:
    return data[start:end]


def count_at(counts: bytearray, place: int) -> float:
    value: float = _double.unpack_from(counts, place * NUMBER)[0]
    return value


def put(counts: bytearray, place: int, value: float) -> None:
    """Replace the count at a place."""
    _double.pack_into(counts, place * NUMBER, value)


def find(table: bytes, name: bytes) -> int:
    """Return the offset of the double of a table's name, -1 if it isn't there."""
    half = len(table) // 2
    at = table.find(name, 0, half)
    while at >= 0 and at % NAME:  # the end of one and the start of the next may look like it
        at = table.find(name, at + 1, half)
    return half + at if at >= 0 else -1


def double_at(table: bytes, at: int) -> float:
    value: float = _double.unpack_from(table, at)[0]
    return value


def least(table: bytes) -> int:
    """Return the offset of a table's least double, the first among equals."""
    half = len(table) // 2
    values = unpack(table[half:])
    return half + values.index(min(values)) * NUMBER


def without(table: bytes, at: int) -> bytes:
    """Return a copy without the double at an offset and its name."""
    named = at - len(table) // 2
    return b"".join((table[:named], table[named + NAME : at], table[at + NUMBER :]))


def with_name(table: bytes, name: bytes, value: float) -> bytes:
    """Return a copy with one more name and its double."""
    half = len(table) // 2
    return b"".join((table[:half], name, table[half:], _double.pack(value)))


def with_double(table: bytes, at: int, value: float) -> bytes:
    """Return a copy with another double at an offset; at the end, with one more."""
    return b"".join((table[:at], _double.pack(value), table[at + NUMBER :]))
