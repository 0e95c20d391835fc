"""Controls: for one provision, what the records show and what they lack."""

from dataclasses import dataclass, field
from datetime import timedelta

from compliance.reports.content.facts import Facts, Frame
from compliance.reports.vocabulary import ControlState


@dataclass(frozen=True)
class Control:
    """The result for the provision with the same id in `regulations`."""

    id: str
    state: ControlState
    evidence: list[str]
    gaps: list[str]


@dataclass
class Findings:
    """Collects the evidence and gaps of one control, and derives its state."""

    id: str
    evidence: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def shows(self, text: str, *, when: bool = True) -> None:
        """Add evidence if `when` is true."""
        if when:
            self.evidence.append(text)

    def lacks(self, text: str, *, when: bool = True) -> None:
        """Add a gap if `when` is true."""
        if when:
            self.gaps.append(text)

    def shows_number(self, number: int, noun: str, rest: str) -> None:
        """Add the evidence "`number` `noun`s `rest`", unless the number is 0."""
        self.shows(f"{counted(number, noun)} {rest}", when=number > 0)

    def lacks_number(self, number: int, noun: str, rest: str) -> None:
        """Add the gap "`number` `noun`s `rest`", unless the number is 0."""
        self.lacks(f"{counted(number, noun)} {rest}", when=number > 0)

    def control(self, *, asks_operator: bool = False) -> Control:
        """Return the control: evidenced, partial with gaps too, not evidenced with gaps alone.

        `asks_operator`: only the operator can provide the evidence.
        """
        if asks_operator:
            state = ControlState.OPERATOR_INPUT_REQUIRED
        elif not self.evidence:
            state = ControlState.NOT_EVIDENCED
        else:
            state = ControlState.PARTIAL if self.gaps else ControlState.EVIDENCED
        return Control(self.id, state, self.evidence, self.gaps)


def mode_gaps(found: Findings, facts: Facts) -> None:
    """Add the agents that the service only observed, and the stops that it did not make."""
    observed, not_made = facts.observed_agents, facts.would_have_stopped_count
    found.lacks_number(observed, "agent", "only observed, at least part of the time: no automatic stop then")
    found.lacks_number(not_made, "automatic stop", "recorded but not made, as the agent was only observed")


def missing_events(found: Findings, facts: Facts) -> None:
    """Add the gap that events of the period were dropped, if any were."""
    if facts.covered_from is not None:
        found.lacks(
            f"Events received before {facts.covered_from:%Y-%m-%d} were dropped and are not counted here"
        )


def no_event(facts: Facts) -> str:
    """Return the gap of a period without events."""
    stored, received = "No event of the period is stored", "No event was received in the period"
    return received if facts.covered_from is None else stored


def retention(found: Findings, frame: Frame, facts: Facts, *, least: timedelta, words: str) -> Control:
    """Return the control of how long records are kept: for `least` at least, which is `words`."""
    if facts.complete_since is None:
        found.lacks("There are no records")
        return found.control()
    kept = {"Events": facts.event_retention_days, "Audit entries": facts.audit_retention_days}
    oldest = {"event": facts.oldest_event_at, "audit entry": facts.oldest_entry_at}
    for what, days in kept.items():
        found.shows(f"{what} are kept for {days:,} days by the present settings")
        found.lacks(f"{what} are kept for less than {words}", when=days < least.days)
    for what, moment in oldest.items():
        if moment is not None:
            found.shows(f"The oldest {what} stored is {spoken(frame.generated_at - moment)} old")
    is_short = frame.generated_at - facts.complete_since < least
    found.lacks(f"The records stored do not reach back {words}", when=is_short)
    _archives(found, facts)
    missing_events(found, facts)
    return found.control()


def _archives(found: Findings, facts: Facts) -> None:
    archived = sum(row["archive_sha256"] is not None for row in facts.archives)
    gone = [row for row in facts.archives if not row["is_stored"]]
    bare = sum(row["archive_sha256"] is None for row in gone)
    found.shows_number(archived, "partition", "of events archived, with its SHA-256 in the audit log")
    found.lacks_number(bare, "partition", "of events dropped without an archive")
    found.lacks(
        "Archived events were dropped: that their archives are kept is for the operator to show",
        when=len(gone) > bare,
    )


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 agent`, `2 agents`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def spoken(span: timedelta) -> str:
    """Return a readable span: `0.4 seconds`, `12 seconds`, `3 minutes`, `5 hours`, `40 days`."""
    seconds = span.total_seconds()
    if seconds < 10:
        return f"{seconds:.1f} seconds"
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= 2 * size or unit == "second":
            return counted(int(seconds // size), unit)
    return ""
