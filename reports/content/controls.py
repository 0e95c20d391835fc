"""Controls: for one provision, what the records show and what they lack."""

from dataclasses import dataclass, field
from datetime import timedelta

from auditlog.vocabulary import AuditAction
from compliance.core.wording import counted, spoken
from reports.content.facts import Facts, Frame, Spread
from reports.content.sources import Rows
from reports.vocabulary import ControlState

INSTANT = timedelta(milliseconds=1)
ACTORS = {"person": "people", "api_key": "API keys", "agent": "agents", "system": "the service"}


@dataclass(frozen=True)
class Evidence:
    """Evidence: a sentence, the set of rows that it rests on, and how many rows of the set show it."""

    text: str
    rows: Rows
    count: int


@dataclass
class Control:
    """What is found for the provision with the same id in `regulations`.

    `asserted`: what only the product says, without rows. It is never evidence. `asks_operator`: only the
    operator can provide the evidence.
    """

    id: str
    frame: Frame
    facts: Facts
    evidence: list[Evidence] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    asserted: list[str] = field(default_factory=list)
    asks_operator: bool = False

    @property
    def state(self) -> ControlState:
        """Evidenced only by rows, without a gap and without an assertion."""
        if self.asks_operator or (self.asserted and not self.evidence):
            return ControlState.OPERATOR_INPUT_REQUIRED
        if not self.evidence:
            return ControlState.NOT_EVIDENCED
        return ControlState.PARTIAL if self.gaps or self.asserted else ControlState.EVIDENCED

    def shows(self, rows: Rows, count: int, text: str) -> None:
        """Add the evidence `text`, which `count` rows show, unless that is 0."""
        if count > 0:
            self.evidence.append(Evidence(text, rows, count))

    def shows_number(self, rows: Rows, count: int, noun: str, rest: str) -> None:
        """Add the evidence "`count` `noun`s `rest`", unless the count is 0."""
        self.shows(rows, count, f"{counted(count, noun)} {rest}")

    def shows_acts(self, rows: Rows, noun: str, rest: str, *actions: str) -> None:
        """Add the evidence "N `noun`s `rest`", and how many of them are whose; unless there are none."""
        by = self.facts.actors(*actions)
        self.shows_number(rows, sum(by.values()), noun, f"{rest}: {whose(by)}")

    def lacks(self, text: str, *, when: bool = True) -> None:
        """Add a gap if `when` is true."""
        if when:
            self.gaps.append(text)

    def lacks_number(self, number: int, noun: str, rest: str, *, many: str = "") -> None:
        """Add the gap "`number` `noun`s `rest`", unless the number is 0."""
        self.lacks(f"{counted(number, noun, many)} {rest}", when=number > 0)

    def lacks_any_event(self) -> None:
        """Add the gap of a period without events."""
        text = "No event was received in the period"
        if self.facts.covered_from is not None:
            text = "No event of the period is stored"
        self.lacks(text, when=self.facts.event_count == 0)

    def lacks_events(self) -> None:
        """Add the gap that events of the period were dropped, if any were."""
        if (start := self.facts.covered_from) is not None:
            self.lacks(f"Events received before {start:%Y-%m-%d} were dropped and are not counted here")

    def lacks_entries(self) -> None:
        """Add the gaps of audit entries of the period that were dropped, or are not as they were sealed."""
        facts, damage = self.facts, "the audit log was tampered with"
        self.lacks_number(
            facts.comparison.changed, "audit entry", f"not as sealed: {damage}", many="audit entries"
        )
        self.lacks_number(
            facts.places_without_entry,
            "place",
            f"of the audit log around the period without its entry, whosever it was: {damage}",
        )
        self.lacks(
            f"The root of the signed checkpoint does not follow from the audit entries: {damage}",
            when=not facts.comparison.is_rooted,
        )
        if (start := facts.entries_from) is not None:
            self.lacks(f"Audit entries made before {start:%Y-%m-%d} were dropped and are not counted here")

    def erasures(self) -> None:
        """Add what was erased of the period's audit entries, and what was erased in the period."""
        facts, compared = self.facts, self.facts.comparison
        of = counted(compared.erased_entries, "audit entry", "audit entries")
        rest = f"of {of} of the period erased: only hashes are left"
        self.lacks_number(compared.erased_parts, "part", rest)
        of = counted(facts.erased_entries, "audit entry", "audit entries")
        acts = facts.actors(AuditAction.AUDIT_ERASED)
        by = f"{counted(sum(acts.values()), 'erasure')}: {whose(acts)}"
        self.lacks_number(facts.erased_parts, "part", f"of {of} of any time erased in the period, by {by}")

    def certificate_acts(self) -> None:
        """Add the revocations, holds and releases of the period, and what held at its end."""
        self.shows_acts(
            Rows.REVOCATIONS, "revocation", "of a certificate for good", AuditAction.CERTIFICATE_REVOKED
        )
        self.shows_acts(Rows.HOLDS, "hold", "put on a certificate", AuditAction.CERTIFICATE_HELD)
        self.shows_acts(Rows.RELEASES, "hold", "lifted", AuditAction.CERTIFICATE_RELEASED)
        facts = self.facts
        total, standing = facts.certificate_count, facts.certificates_at_end
        held, revoked = facts.certificates_on_hold_at_end, facts.certificates_revoked_at_end
        self.shows_number(
            Rows.CERTIFICATES,
            total,
            "certificate",
            f"in force at some time in the period; at its end {standing:,} in force, {held:,} on hold, "
            f"{revoked:,} revoked for good, {total - standing - held - revoked:,} expired",
        )

    def incidents(self) -> None:
        """Add the incidents opened in the period, whose they are and how they stand."""
        found = self.facts.incidents
        states = ", ".join(f"{number:,} {state}" for state, number in sorted(found.items()))
        by = whose(self.facts.incidents_opened_by)
        rest = f"opened: {by}; when this report was generated {states}"
        self.shows_number(Rows.INCIDENTS, sum(found.values()), "incident", rest)

    def interventions(self) -> None:
        """Add what people did in the console."""
        rest = "by people in the console, reviews of events among them"
        self.shows_number(Rows.INTERVENTIONS, self.facts.human_interventions, "intervention", rest)

    def approvals(self) -> None:
        """Add the acts that agents asked about, and those done with an approval."""
        rest = "of agents answered before the act"
        self.shows_acts(Rows.APPROVALS, "question", rest, AuditAction.APPROVAL_DECIDED)
        rest = "done, each with a receipt that is good once"
        self.shows_acts(Rows.APPROVED_ACTS, "approved act", rest, AuditAction.APPROVAL_USED)

    def owners(self) -> None:
        """Add the agents that somebody answers for, and those that nobody does."""
        facts, when = self.facts, "when this report was generated"
        self.shows_number(Rows.OWNED, facts.owned_agents, "agent", f"with an owner who answers for it {when}")
        self.lacks_number(facts.orphaned_agents, "agent", f"without an owner {when}")

    def access_reviews(self) -> None:
        """Add the reviews of access that ended or fell overdue, and the decisions made in any."""
        done, overdue = map(
            self.facts.audited, (AuditAction.ACCESS_REVIEW_DONE, AuditAction.ACCESS_REVIEW_OVERDUE)
        )
        self.shows_number(Rows.ACCESS_REVIEWS, done, "access review", "finished, each with a signed record")
        rest = "on whether an agent still needs what it may do"
        self.shows_acts(Rows.ACCESS_DECISIONS, "decision", rest, AuditAction.ACCESS_REVIEW_DECIDED)
        self.lacks_number(overdue, "access review", "fell overdue")

    def modes(self) -> None:
        """Add the agents that the service only observed, and the stops that it did not make."""
        rest = "only observed, at least part of the time: no automatic stop then"
        self.lacks_number(self.facts.observed_agents, "agent", rest)
        rest = "recorded but not made, as the agent was only observed"
        unmade = self.facts.audited(AuditAction.AGENT_WOULD_HAVE_STOPPED)
        self.lacks_number(unmade, "automatic stop", rest)

    def verdicts(self) -> None:
        """Add the reviews of high-risk events, how long they took, and the events without one."""
        facts = self.facts
        confirmed, dismissed = (facts.verdicts.get(name, 0) for name in ("confirmed", "dismissed"))
        reviewed, total = confirmed + dismissed, facts.high_risk_count
        delays = _delays(facts.review_delays, "from event to first review")
        self.shows(
            Rows.REVIEWED,
            reviewed,
            f"{reviewed:,} of {counted(total, 'high-risk event')} reviewed: {confirmed:,} confirmed as part "
            f"of an attack, {dismissed:,} dismissed; {whose(facts.verdicts_by)}{delays}",
        )
        self.lacks_number(total - reviewed, "high-risk event", "without a review")

    def stops(self) -> None:
        """Add the automatic stops, and the time from the strike to the stop."""
        spread = self.facts.stop_delays
        delays = _delays(spread, "from the receipt of the last strike to the stop")
        if spread is not None and spread.longest < INSTANT:
            delays = ", stamped with the receipt of the last strike: both are one reading of the clock"
        rest = f"made by the service{delays}"
        self.shows_number(Rows.STOPS, self.facts.stop_count, "automatic stop", rest)

    def retention(self, *, least: timedelta, words: str) -> None:
        """Add how long records are kept: for `least` at least, which is `words`."""
        facts, generated_at = self.facts, self.frame.generated_at
        if facts.complete_since is None:
            self.lacks("There are no records")
            return
        for what, at in {"event": facts.oldest_event_at, "audit entry": facts.oldest_entry_at}.items():
            if at is not None:
                age = spoken(generated_at - at)
                self.shows(Rows.OLDEST, 1, f"The oldest {what} stored is {age} old ({at:%Y-%m-%d %H:%M} UTC)")
        for what, name, days in (
            ("Events", "EVENT_RETENTION_DAYS", facts.event_retention_days),
            ("Audit entries", "AUDIT_RETENTION_DAYS", facts.audit_retention_days),
        ):
            self.asserted.append(f"{what} are kept for {days:,} days by the present settings")
            self.lacks(f"{what} are kept for less than {words}", when=days < least.days)
            changes = [row for row in facts.retention_changes if row["setting"] == name]
            for row in changes:
                before = f"{row['before']:,} days before" if row["before"] else "nothing recorded before"
                self.asserted.append(
                    f"{what}: the operator's configuration says {row['days']:,} days since "
                    f"{row['at']:%Y-%m-%d %H:%M} UTC or shortly before; {before}"
                )
            is_recorded = bool(changes) and changes[-1]["days"] == days
            text = f"Since when the retention of {what.lower()} is set so is not recorded yet"
            self.lacks(text, when=not is_recorded)
        is_short = generated_at - facts.complete_since < least
        self.lacks(f"The records stored do not reach back {words}", when=is_short)
        archived = sum(row["archive_sha256"] is not None for row in facts.archives)
        gone = [row for row in facts.archives if not row["is_stored"]]
        bare = sum(row["archive_sha256"] is None for row in gone)
        rest = "of events archived, with its SHA-256 in the audit log"
        self.shows_number(Rows.ARCHIVES, archived, "partition", rest)
        self.lacks_number(bare, "partition", "of events dropped without an archive")
        text = "Archived events were dropped: that their archives are kept is for the operator to show"
        self.lacks(text, when=len(gone) > bare)
        self.lacks_events()
        self.lacks_entries()
        self.erasures()


def whose(by: dict[str, int]) -> str:
    """Return counts by the kind of actor in words: `2 by people, 1 by API keys`."""
    return ", ".join(f"{by[kind]:,} by {name}" for kind, name in ACTORS.items() if by.get(kind))


def _delays(spread: Spread | None, words: str) -> str:
    if spread is None:
        return ""
    return f"; {words}: median {spoken(spread.median)}, longest {spoken(spread.longest)}"
