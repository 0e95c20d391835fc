"""Risk bands of the interface specification, for the scores of events and agents."""

from typing import Final

MEDIUM: Final = 0.3
HIGH: Final = 0.85
BANDS: Final = ("low", "medium", "high")


def band_of(score: float) -> str:
    """Return the band of a score: low below 0.3, medium below 0.85, else high."""
    if score >= HIGH:
        return "high"
    return "medium" if score >= MEDIUM else "low"
