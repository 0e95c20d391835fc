"""Reporting clocks, computed from what an incident's record and its officers state.

A clock never runs longer than the law's: days are counted as 24 hours from the moment itself, and weekends
and holidays extend nothing. While nobody has said whether a duty applies, its clock runs from the detection.
"""

from calendar import monthrange
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from django.db import models

from compliance.incidents.duties.law import AI_ACT, DORA
from compliance.incidents.vocabulary import DoraClass, SeriousHarm


class ClockKind(models.TextChoices):
    """The reports that have a term; the first part is the regime."""

    AI_ACT_REPORT = "ai_act.report", "AI Act: serious incident report"
    DORA_INITIAL = "dora.initial", "DORA: initial notification"
    DORA_INTERMEDIATE = "dora.intermediate", "DORA: intermediate report"
    DORA_FINAL = "dora.final", "DORA: final report"


class ClockState(models.TextChoices):
    """`waiting`: the report before it has not been sent. `missed` stays, also once the report was sent."""

    WAITING = "waiting"
    DUE = "due"
    MET = "met"
    MISSED = "missed"
    NOT_APPLICABLE = "not_applicable"


REGIMES: Final = ("ai_act", "dora")
NEAR, MISSED = "near", "missed"


class StatedFacts(Protocol):
    """The fields of an incident that its clocks are computed from."""

    detected_at: datetime
    aware_at: datetime | None
    serious_harm: str
    ai_act_reported_at: datetime | None
    dora_class: str
    classified_at: datetime | None
    dora_initial_at: datetime | None
    dora_intermediate_at: datetime | None
    dora_final_at: datetime | None


@dataclass(frozen=True)
class Clock:
    """A report's term. `basis` says which moment it runs from; None as `due_at`: it does not run (yet)."""

    kind: ClockKind
    provision: str
    applies: bool
    basis: str = ""
    started_at: datetime | None = None
    due_at: datetime | None = None
    warn_at: datetime | None = None
    met_at: datetime | None = None

    def state_at(self, now: datetime) -> ClockState:
        if not self.applies:
            return ClockState.NOT_APPLICABLE
        if self.due_at is None:
            return ClockState.MET if self.met_at else ClockState.WAITING
        if (self.met_at or now) > self.due_at:
            return ClockState.MISSED
        return ClockState.MET if self.met_at else ClockState.DUE

    @property
    def is_open(self) -> bool:
        """Whether the report has still to be sent."""
        return self.applies and self.met_at is None

    def announcements(self) -> Iterator[tuple[datetime, str, str]]:
        """Yield the moment, the stage and the key of each announcement due while the clock is open."""
        if self.is_open and self.due_at is not None and self.warn_at is not None:
            yield self.warn_at, NEAR, f"{self.kind}/{NEAR}/{self.due_at.isoformat()}"
            yield self.due_at, MISSED, f"{self.kind}/{MISSED}/{self.due_at.isoformat()}"


def clocks_of(facts: StatedFacts, regimes: Collection[str] = REGIMES) -> tuple[Clock, ...]:
    """Return the clocks of an incident, those of other regimes as not applicable."""
    found = (_ai_act(facts), _initial(facts), _intermediate(facts), _final(facts))
    return tuple(
        clock
        if clock.kind.partition(".")[0] in regimes
        else Clock(clock.kind, clock.provision, applies=False)
        for clock in found
    )


def next_due_at(clocks: Collection[Clock]) -> datetime | None:
    """Return the earliest end of an open clock."""
    return min((clock.due_at for clock in clocks if clock.is_open and clock.due_at), default=None)


def next_announcement_at(clocks: Collection[Clock], announced: Collection[str]) -> datetime | None:
    """Return the moment of the earliest announcement that was not made."""
    waiting = (at for clock in clocks for at, _, key in clock.announcements() if key not in announced)
    return min(waiting, default=None)


def _aware(facts: StatedFacts) -> tuple[datetime, str]:
    if facts.aware_at is not None:
        return facts.aware_at, "awareness, as stated"
    return facts.detected_at, "detection by the service"


def _ai_act(facts: StatedFacts) -> Clock:
    harm = SeriousHarm(facts.serious_harm)
    if harm is SeriousHarm.NOT_SERIOUS:
        provision = AI_ACT[SeriousHarm.UNDECIDED].provision
        return Clock(ClockKind.AI_ACT_REPORT, provision, applies=False)
    term, (start, basis) = AI_ACT[harm], _aware(facts)
    due, met = start + term.span, facts.ai_act_reported_at
    return Clock(ClockKind.AI_ACT_REPORT, term.provision, True, basis, start, due, due - term.warning, met)


def _initial(facts: StatedFacts) -> Clock:
    start, basis = _aware(facts)
    due = start + DORA.from_awareness
    classified = facts.classified_at
    if facts.dora_class == DoraClass.MAJOR and classified is not None:
        from_classification = classified + DORA.from_classification
        # Classified after the first 24 hours, the four hours count alone.
        if from_classification < due or classified > due:
            start, basis, due = classified, "classification as major, as stated", from_classification
    return _dora(ClockKind.DORA_INITIAL, facts, 0, start, basis, due, facts.dora_initial_at)


def _intermediate(facts: StatedFacts) -> Clock:
    start = facts.dora_initial_at
    due = start + DORA.intermediate if start else None
    basis = "initial notification, as stated" if start else ""
    return _dora(ClockKind.DORA_INTERMEDIATE, facts, 1, start, basis, due, facts.dora_intermediate_at)


def _final(facts: StatedFacts) -> Clock:
    start = facts.dora_intermediate_at
    due = months_later(start, DORA.final_months) if start else None
    basis = "intermediate report, as stated" if start else ""
    return _dora(ClockKind.DORA_FINAL, facts, 2, start, basis, due, facts.dora_final_at)


def _dora(
    kind: ClockKind,
    facts: StatedFacts,
    stage: int,
    start: datetime | None,
    basis: str,
    due: datetime | None,
    met: datetime | None,
) -> Clock:
    # Nothing follows from the initial notification until the incident is classified as major.
    applies = facts.dora_class == DoraClass.MAJOR or (
        facts.dora_class == DoraClass.UNDECIDED and kind is ClockKind.DORA_INITIAL
    )
    if not applies:
        return Clock(kind, DORA.provision, applies=False)
    warn = due - DORA.warnings[stage] if due else None
    return Clock(kind, DORA.provision, True, basis, start, due, warn, met)


def months_later(moment: datetime, months: int) -> datetime:
    """Return the same day and time some calendar months later; the month's last day if it has no such day."""
    index = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(index, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))
