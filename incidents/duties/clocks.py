"""Reporting clocks, computed from what an incident's record and its officers state.

A clock never runs longer than the law's: days are counted as 24 hours from the moment itself, and weekends
and holidays extend nothing. While nobody has said whether a duty applies, its clock runs from the detection.
"""

import tomllib
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.db import models

from incidents.vocabulary import DoraClass, SeriousHarm

if TYPE_CHECKING:
    from incidents.models import Incident

LAW: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("law.toml").read_text())
DORA: Final = LAW["dora"]
DORA_PROVISION: Final = f"{DORA['reference']}; {DORA['terms_reference']}"
NEAR, MISSED = "near", "missed"


@dataclass(frozen=True)
class Term:
    """The term of a report, the time of its warning before the end, and the provision."""

    span: timedelta
    warning: timedelta
    provision: str


AI_ACT: Final = {
    SeriousHarm(name): Term(
        timedelta(days=term["days"]),
        timedelta(hours=term["warn_hours"]),
        f"{LAW['ai_act']['reference']}, {term['provision']}",
    )
    for name, term in LAW["ai_act"]["terms"].items()
}


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
        """Return whether the report has still to be sent."""
        return self.applies and self.met_at is None

    def announcements(self) -> Iterator[tuple[datetime, str, str]]:
        """Yield the moment, the stage and the key of each announcement due while the clock is open."""
        if self.is_open and self.due_at is not None and self.warn_at is not None:
            yield self.warn_at, NEAR, f"{self.kind}/{NEAR}/{self.due_at.isoformat()}"
            yield self.due_at, MISSED, f"{self.kind}/{MISSED}/{self.due_at.isoformat()}"


def clocks_of(incident: "Incident", *, are_over: bool = False) -> tuple[Clock, ...]:
    """Return the clocks of an incident; none of them applies if they `are_over`."""
    found = (_ai_act(incident), *_dora(incident))
    if are_over:
        return tuple(Clock(clock.kind, clock.provision, applies=False) for clock in found)
    return found


def _aware(incident: "Incident") -> tuple[datetime, str]:
    if incident.aware_at is not None:
        return incident.aware_at, "awareness, as stated"
    return incident.detected_at, "detection by the service"


def _ai_act(incident: "Incident") -> Clock:
    harm = SeriousHarm(incident.serious_harm)
    if harm is SeriousHarm.NOT_SERIOUS:
        provision = AI_ACT[SeriousHarm.UNDECIDED].provision
        return Clock(ClockKind.AI_ACT_REPORT, provision, applies=False)
    term, (start, basis) = AI_ACT[harm], _aware(incident)
    due, met = start + term.span, incident.ai_act_reported_at
    return Clock(ClockKind.AI_ACT_REPORT, term.provision, True, basis, start, due, due - term.warning, met)


def _dora(incident: "Incident") -> tuple[Clock, Clock, Clock]:
    start, basis = _aware(incident)
    due = start + timedelta(hours=DORA["initial"]["hours_from_awareness"])
    classified = incident.classified_at
    if incident.dora_class == DoraClass.MAJOR and classified is not None:
        from_classification = classified + timedelta(hours=DORA["initial"]["hours_from_classification"])
        # Classified after the first 24 hours, the four hours count alone.
        if from_classification < due or classified > due:
            start, basis, due = classified, "classification as major, as stated", from_classification
    sent = incident.dora_initial_at
    then = incident.dora_intermediate_at
    return (
        _dora_clock(ClockKind.DORA_INITIAL, incident, start, basis, due, sent),
        _dora_clock(
            ClockKind.DORA_INTERMEDIATE,
            incident,
            sent,
            "initial notification, as stated",
            sent and sent + timedelta(hours=DORA["intermediate"]["hours_from_initial"]),
            then,
        ),
        _dora_clock(
            ClockKind.DORA_FINAL,
            incident,
            then,
            "intermediate report, as stated",
            then and months_later(then, DORA["final"]["months_from_intermediate"]),
            incident.dora_final_at,
        ),
    )


def _dora_clock(
    kind: ClockKind,
    incident: "Incident",
    start: datetime | None,
    basis: str,
    due: datetime | None,
    met: datetime | None,
) -> Clock:
    # Nothing follows from the initial notification until the incident is classified as major.
    applies = incident.dora_class == DoraClass.MAJOR or (
        incident.dora_class == DoraClass.UNDECIDED and kind is ClockKind.DORA_INITIAL
    )
    if not applies:
        return Clock(kind, DORA_PROVISION, applies=False)
    warning = timedelta(hours=DORA[kind.value.removeprefix("dora.")]["warn_hours"])
    return Clock(kind, DORA_PROVISION, True, basis if start else "", start, due, due and due - warning, met)


def months_later(moment: datetime, months: int) -> datetime:
    """Return the same day and time some calendar months later; the month's last day if it has no such day."""
    index = moment.year * 12 + moment.month - 1 + months
    year, month = divmod(index, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))
