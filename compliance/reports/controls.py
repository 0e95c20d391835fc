"""A control: one provision, what the records show for it, and what they don't."""

from dataclasses import dataclass, field
from datetime import timedelta

from compliance.reports.vocabulary import ControlState


@dataclass(frozen=True)
class Control:
    """A finding on the provision with the same id in `regulations`."""

    id: str
    state: ControlState
    evidence: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


@dataclass
class Findings:
    """Collects evidence and gaps of one control, and draws the state from them."""

    id: str
    evidence: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def shows(self, text: str, *, when: bool = True) -> None:
        """Evidence, if `when` holds."""
        if when:
            self.evidence.append(text)

    def lacks(self, text: str, *, when: bool = True) -> None:
        """A gap, if `when` holds."""
        if when:
            self.gaps.append(text)

    def control(self, *, asks_operator: bool = False) -> Control:
        """Evidenced without gaps, partial with, not evidenced by gaps alone; or the operator must speak."""
        if asks_operator:
            state = ControlState.OPERATOR_INPUT_REQUIRED
        elif not self.evidence:
            state = ControlState.NOT_EVIDENCED
        else:
            state = ControlState.PARTIAL if self.gaps else ControlState.EVIDENCED
        return Control(self.id, state, tuple(self.evidence), tuple(self.gaps))


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 agent`, `2 agents`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def spoken(span: timedelta) -> str:
    """A span for people: `0.4 seconds`, `12 seconds`, `3 minutes`, `5 hours`, `40 days`."""
    seconds = span.total_seconds()
    if seconds < 10:
        return f"{seconds:.1f} seconds"
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= 2 * size or unit == "second":
            return counted(int(seconds // size), unit)
    return ""
