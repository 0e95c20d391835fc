"""Risk bands of the interface specification, for scores of events and of agents."""

from typing import Final

MEDIUM: Final = 0.3
HIGH: Final = 0.85
BANDS: Final = ("low", "medium", "high")


def band_of(score: float) -> str:
    """low below 0.3, medium below 0.85 (so the specification's gap from 0.84 is medium), else high."""
    if score >= HIGH:
        return "high"
    return "medium" if score >= MEDIUM else "low"
