"""Controls: for one provision, what the records show and what they lack."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

from compliance.core.wording import counted, spoken
from compliance.reports.content.facts import Facts, Frame, Spread
from compliance.reports.content.sources import Rows
from compliance.reports.vocabulary import ControlState

INSTANT = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Evidence:
    """Evidence: a sentence, the set of rows that it rests on, and how many rows of the set show it."""

    text: str
    rows: Rows
    count: int


@dataclass(frozen=True)
class Control:
    """The result for the provision with the same id in `regulations`.

    `asserted`: what only the product says, without rows. It is never evidence.
    """

    id: str
    evidence: tuple[Evidence, ...] = ()
    gaps: tuple[str, ...] = ()
    asserted: tuple[str, ...] = ()
    asks_operator: bool = False

    @property
    def state(self) -> ControlState:
        """Evidenced only by rows, without a gap and without an assertion."""
        if self.asks_operator or (self.asserted and not self.evidence):
            return ControlState.OPERATOR_INPUT_REQUIRED
        if not self.evidence:
            return ControlState.NOT_EVIDENCED
        return ControlState.PARTIAL if self.gaps or self.asserted else ControlState.EVIDENCED

    def with_gaps(self, gaps: list[str]) -> "Control":
        return replace(self, gaps=(*self.gaps, *gaps))


@dataclass
class Findings:
    """Collects what is found for one control."""

    id: str
    evidence: list[Evidence] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    asserted: list[str] = field(default_factory=list)

    def shows(self, rows: Rows, count: int, text: str) -> None:
        """Add the evidence `text`, which `count` rows show, unless that is 0."""
        if count > 0:
            self.evidence.append(Evidence(text, rows, count))

    def shows_number(self, rows: Rows, count: int, noun: str, rest: str) -> None:
        """Add the evidence "`count` `noun`s `rest`", unless the count is 0."""
        self.shows(rows, count, f"{counted(count, noun)} {rest}")

    def lacks(self, text: str, *, when: bool = True) -> None:
        """Add a gap if `when` is true."""
        if when:
            self.gaps.append(text)

    def lacks_number(self, number: int, noun: str, rest: str) -> None:
        """Add the gap "`number` `noun`s `rest`", unless the number is 0."""
        self.lacks(f"{counted(number, noun)} {rest}", when=number > 0)

    def asserts(self, text: str) -> None:
        """Add what the product says of itself."""
        self.asserted.append(text)

    def control(self, *, asks_operator: bool = False) -> Control:
        """Return the control; `asks_operator`: only the operator can provide the evidence."""
        found = (tuple(self.evidence), tuple(self.gaps), tuple(self.asserted))
        return Control(self.id, *found, asks_operator=asks_operator)


def period_gaps(frame: Frame, facts: Facts) -> list[str]:
    """Return the gaps that each control has: a period without records, or one that had not ended."""
    found = []
    if facts.is_empty:
        found.append("No event and no audit entry of the period is stored")
    if frame.covered_until < frame.end:
        found.append(
            f"The period had not ended: nothing after {frame.covered_until:%Y-%m-%d %H:%M} UTC counts"
        )
    return found


def missing_events(found: Findings, facts: Facts) -> None:
    """Add the gap that events of the period were dropped, if any were."""
    if facts.covered_from is not None:
        found.lacks(
            f"Events received before {facts.covered_from:%Y-%m-%d} were dropped and are not counted here"
        )


def missing_entries(found: Findings, facts: Facts) -> None:
    """Add the gap that audit entries of the period were dropped, if any were."""
    if facts.entries_from is not None:
        found.lacks(
            f"Audit entries made before {facts.entries_from:%Y-%m-%d} were dropped and are not counted here"
        )


def no_event(facts: Facts) -> str:
    """Return the gap of a period without events."""
    stored, received = "No event of the period is stored", "No event was received in the period"
    return received if facts.covered_from is None else stored


def mode_gaps(found: Findings, facts: Facts) -> None:
    """Add the agents that the service only observed, and the stops that it did not make."""
    observed, not_made = facts.observed_agents, facts.would_have_stopped_count
    found.lacks_number(observed, "agent", "only observed, at least part of the time: no automatic stop then")
    found.lacks_number(not_made, "automatic stop", "recorded but not made, as the agent was only observed")


def verdicts(found: Findings, facts: Facts) -> None:
    """Add the reviews of high-risk events, how long they took, and the events without one."""
    confirmed, dismissed = (facts.verdicts.get(name, 0) for name in ("confirmed", "dismissed"))
    reviewed, total, keys = confirmed + dismissed, facts.high_risk_count, facts.verdicts_by_keys
    by_keys = f" ({keys:,} by API keys)" if keys else ""
    delays = _delays(facts.review_delays, "from event to first review")
    found.shows(
        Rows.REVIEWED,
        reviewed,
        f"{reviewed:,} of {counted(total, 'high-risk event')} reviewed: {confirmed:,} confirmed as part of "
        f"an attack, {dismissed:,} dismissed{by_keys}{delays}",
    )
    found.lacks_number(total - reviewed, "high-risk event", "without a review")


def stops(found: Findings, facts: Facts) -> None:
    """Add the automatic stops, and the time from the strike to the stop."""
    delays = _delays(facts.stop_delays, "from the receipt of the last strike to the stop")
    if facts.stop_delays is not None and facts.stop_delays.longest < INSTANT:
        delays = ", stamped with the receipt of the last strike: both are one reading of the clock"
    found.shows_number(Rows.STOPS, facts.stop_count, "automatic stop", f"made{delays}")


def _delays(spread: Spread | None, words: str) -> str:
    if spread is None:
        return ""
    return f"; {words}: median {spoken(spread.median)}, longest {spoken(spread.longest)}"


def retention(found: Findings, frame: Frame, facts: Facts, *, least: timedelta, words: str) -> Control:
    """Return the control of how long records are kept: for `least` at least, which is `words`."""
    if facts.complete_since is None:
        found.lacks("There are no records")
        return found.control()
    for what, moment in {"event": facts.oldest_event_at, "audit entry": facts.oldest_entry_at}.items():
        if moment is not None:
            age = spoken(frame.generated_at - moment)
            found.shows(
                Rows.OLDEST, 1, f"The oldest {what} stored is {age} old ({moment:%Y-%m-%d %H:%M} UTC)"
            )
    for what, days in {
        "Events": facts.event_retention_days,
        "Audit entries": facts.audit_retention_days,
    }.items():
        found.asserts(f"{what} are kept for {days:,} days by the present settings")
        found.lacks(f"{what} are kept for less than {words}", when=days < least.days)
    is_short = frame.generated_at - facts.complete_since < least
    found.lacks(f"The records stored do not reach back {words}", when=is_short)
    _archives(found, facts)
    missing_events(found, facts)
    missing_entries(found, facts)
    return found.control()


def _archives(found: Findings, facts: Facts) -> None:
    archived = sum(row["archive_sha256"] is not None for row in facts.archives)
    gone = [row for row in facts.archives if not row["is_stored"]]
    bare = sum(row["archive_sha256"] is None for row in gone)
    found.shows_number(
        Rows.ARCHIVES, archived, "partition", "of events archived, with its SHA-256 in the audit log"
    )
    found.lacks_number(bare, "partition", "of events dropped without an archive")
    found.lacks(
        "Archived events were dropped: that their archives are kept is for the operator to show",
        when=len(gone) > bare,
    )
