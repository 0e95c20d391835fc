"""Find characters that a reader cannot see or that reorder text."""

import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import Final

HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Controls, format characters, surrogates, private use and line separators."""
# Default_Ignorable_Code_Point (UAX #44) of other categories (fillers, variation selectors, unassigned), and
# the blank Braille pattern.
_ALSO_HIDDEN: Final = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065)),
    *((0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
)
_SEARCHED: Final = 0x20000
_ABOVE: Final = "\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
"""Tags and private use: from `_SEARCHED` on, everything else is an ideograph."""


def _ranges() -> Iterator[str]:
    """The runs of hidden code points, ascending, as ranges of a regular expression."""
    also = {point for first, last in _ALSO_HIDDEN for point in range(first, last + 1)}
    categories = ((point, unicodedata.category(chr(point))) for point in range(_SEARCHED))
    hidden = [
        point
        for point, category in categories
        if category != "Cs" and (point in also or category in HIDDEN_CATEGORIES)
    ]
    for _, run in groupby(enumerate(hidden), key=lambda pair: pair[1] - pair[0]):
        first, *rest = (f"\\u{point:04X}" if point <= 0xFFFF else chr(point) for _, point in run)
        yield f"{first}-{rest[-1]}" if rest else first


_HIDDEN: Final = "".join(_ranges()) + _ABOVE
PLAIN_TEXT_PATTERN: Final = f"^[^{_HIDDEN}]*$"
"""A regular expression for ECMA-262 (with the flag `u`) and Python.

Surrogates are not in it: no JSON text holds one, and not every engine can write them.
"""
HIDDEN: Final = re.compile(f"[{_HIDDEN}\\uD800-\\uDFFF]")


def is_plain_text(text: str) -> bool:
    """Return whether every character of `text` is visible and stands where it is written."""
    return HIDDEN.search(text) is None
