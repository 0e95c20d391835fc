"""How many days the law asks to keep records."""

from typing import Final

AI_ACT_DAYS: Final = 183
"""Six months, the least of Articles 19 and 26(6) of Regulation (EU) 2024/1689."""
MICA_DAYS: Final = 1827
"""Five years, of Article 68(9) of Regulation (EU) 2023/1114."""
