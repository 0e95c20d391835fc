"""What hides in a name: every character of the kinds that show nothing, whatever Unicode adds."""

import re
import sys
import unicodedata

import pytest

from compliance.console.display import visible
from compliance.core.plain_text import HIDDEN_CATEGORIES, PLAIN_TEXT_PATTERN, is_plain_text

# Default_Ignorable_Code_Point of Unicode 15 (DerivedCoreProperties.txt).
IGNORABLE = [
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
]
PUBLISHED = re.compile(PLAIN_TEXT_PATTERN)


def test_every_character_of_the_hidden_kinds_is_refused_and_no_letter_is() -> None:
    ignorable = {point for first, last in IGNORABLE for point in range(first, last + 1)}

    for point in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(point))
        if category in HIDDEN_CATEGORIES or point in ignorable:
            assert not is_plain_text(chr(point)), f"U+{point:04X}"
        elif category[0] in "LNPS" and point != 0x2800:
            assert is_plain_text(chr(point)), f"U+{point:04X}"


def test_the_published_pattern_refuses_the_same() -> None:
    for point in range(sys.maxunicode + 1):
        if unicodedata.category(chr(point)) == "Cs":
            continue
        text = f"a{chr(point)}"
        assert (PUBLISHED.fullmatch(text) is not None) == is_plain_text(text), f"U+{point:04X}"


@pytest.mark.parametrize(
    "text", ["alice@example.com", "Zoë Ærø", "山田　太郎", "محمد", "राम", "🤖 bot", "a b", "→"]
)
def test_names_of_all_scripts_are_plain(text: str) -> None:
    assert is_plain_text(text)


def test_the_console_spells_out_what_hides() -> None:
    assert visible("a\u200bb\u3164c\U000e0041\nd") == "a\\u200bb\\u3164c\\U000e0041\nd"
