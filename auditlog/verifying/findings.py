"""Findings of a verification, and its verdict."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

MOST_KEPT: Final = 20


class LogOutcome(StrEnum):
    """The verdict of a verification; `CANNOT_TELL` where something it needs is absent."""

    VERIFIED = "verified"
    TAMPERED = "tampered"
    CANNOT_TELL = "cannot tell"


class Damage(StrEnum):
    CHANGED = "changed"
    MISSING = "missing"
    SWAPPED = "swapped"
    INSERTED = "inserted"
    TILE = "tile"
    HEAD = "head"
    CHECKPOINT = "checkpoint"
    ROLLED_BACK = "rolled back"
    UNRECORDED = "unrecorded"
    FILE = "file"


@dataclass(frozen=True)
class Flaw:
    """One thing that is wrong: at which place in the tree, in which entry, and what."""

    damage: Damage
    detail: str
    index: int | None = None
    entry_id: str | None = None

    def __str__(self) -> str:
        place = "" if self.index is None else f" at index {self.index}"
        entry = "" if self.entry_id is None else f", entry {self.entry_id}"
        return f"{self.damage}{place}{entry}: {self.detail}"


@dataclass
class Verdict:
    """The first flaws, how many there are, what was counted, and `doubts`: why nothing can be told."""

    subject: str
    counts: dict[str, Any] = field(default_factory=dict)
    flaws: list[Flaw] = field(default_factory=list)
    flaw_count: int = 0
    doubts: list[str] = field(default_factory=list)

    def add(self, *flaws: Flaw) -> None:
        self.flaw_count += len(flaws)
        self.flaws += flaws[: max(0, MOST_KEPT - len(self.flaws))]

    @property
    def outcome(self) -> LogOutcome:
        if self.flaw_count:
            return LogOutcome.TAMPERED
        return LogOutcome.CANNOT_TELL if self.doubts else LogOutcome.VERIFIED
