"""Small tables kept as bytes: 64-bit names one after the other, and as many little-endian doubles.

What is packed is never changed in place but replaced, so copies share it. The compiled scorer takes the same
functions from `packed.pxd`.
"""

from functools import lru_cache
from struct import Struct

NAME = 8
NUMBER = 8
_double = Struct("<d")
_pack, _unpack = _double.pack, _double.unpack_from


@lru_cache(maxsize=2048)
def _doubles(count: int) -> Struct:
    return Struct(f"<{count}d")


def pack(values: tuple[float, ...]) -> bytes:
    """Doubles as bytes."""
    return _doubles(len(values)).pack(*values)


def unpack(doubles: bytes) -> tuple[float, ...]:
    """Doubles from bytes."""
    return _doubles(len(doubles) // NUMBER).unpack(doubles)


def part(packed: bytes, start: int, stop: int) -> bytes:
    """The bytes from `start` to just before `stop`."""
    return packed[start:stop]


def find(names: bytes, name: bytes) -> int:
    """Where the name stands, in bytes; -1 if it isn't there."""
    at = names.find(name)
    while at >= 0 and at % NAME:  # two neighbours' end and start may look like it
        at = names.find(name, at + 1)
    return at


def double_at(doubles: bytes, at: int) -> float:
    """The double that begins at a byte."""
    value: float = _unpack(doubles, at)[0]
    return value


def with_double(doubles: bytes, at: int, value: float) -> bytes:
    """The same with another double at a byte; just past the end it is one more."""
    return b"".join((doubles[:at], _pack(value), doubles[at + NUMBER :]))


def without(packed: bytes, at: int) -> bytes:
    """The same without the name or number at a byte."""
    return packed[:at] + packed[at + NAME :]
