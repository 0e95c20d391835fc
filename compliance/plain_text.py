"""Find characters that a reader cannot see or that reorder text."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Controls, format characters (direction marks, zero-width ones, tags), halves of characters, private use,
and line separators.
"""
# Default_Ignorable_Code_Point (UAX #44) of other categories: fillers, variation selectors, unassigned ones;
# and the blank Braille pattern. The tags' block and private use stand here whole.
_ALSO_HIDDEN: Final = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065)),
    *((0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0xE0000, 0xE0FFF), (0xF0000, 0x10FFFF)),
)
_SEARCHED: Final = 0x20000
"""The planes above hold ideographs and what `_ALSO_HIDDEN` names."""


def _hidden_code_points() -> Iterator[int]:
    also = {point for first, last in _ALSO_HIDDEN if last < _SEARCHED for point in range(first, last + 1)}
    for point in range(_SEARCHED):
        if point in also or unicodedata.category(chr(point)) in HIDDEN_CATEGORIES:
            yield point


def _ranges(points: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The runs of ascending code points, each as its first and its last."""
    for _, run in groupby(enumerate(points), key=lambda pair: pair[1] - pair[0]):
        found = [point for _, point in run]
        yield found[0], found[-1]


def _spelled(point: int) -> str:
    return f"\\u{point:04X}" if point <= 0xFFFF else chr(point)


def _class_of(points: Iterable[int]) -> str:
    """The inside of a regular expression's brackets that holds the code points, and the planes above."""
    above = (pair for pair in _ALSO_HIDDEN if pair[0] >= _SEARCHED)
    return "".join(
        _spelled(first) if first == last else f"{_spelled(first)}-{_spelled(last)}"
        for first, last in (*_ranges(points), *above)
    )


_WHOLE: Final = _class_of(
    point for point in _hidden_code_points() if unicodedata.category(chr(point)) != "Cs"
)
PLAIN_TEXT_PATTERN: Final = f"^[^{_WHOLE}]*$"
"""For the API's description: a regular expression of ECMA-262 (with the flag `u`) and of Python's `re`.

Halves of characters are not in it, since no JSON text holds one, and not every engine can write them.
"""
HIDDEN: Final = re.compile(f"[{_class_of(_hidden_code_points())}]")


def is_plain_text(text: str) -> bool:
    """Whether every character of `text` shows, and stands where it is written."""
    return HIDDEN.search(text) is None
