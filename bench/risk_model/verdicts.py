"""Payments of one tenant whose frauds an officer confirms a week later: what it tells, and whom it hurts."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from agents.risk import HIGH
from bench.risk_model.figures import Line, decimals
from bench.risk_model.judging import Ranking, Share, ranking, share
from bench.risk_model.regimes import Stream
from events.risk.evaluation.backtest import LOW, ReplayedEvent
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.details import read
from events.risk.scoring.habits.learning import unlearn
from events.risk.scoring.habits.state import DAY, AgentState
from events.risk.scoring.habits.tables import digest
from events.risk.scoring.marked import places_of, weighed
from events.risk.scoring.model import fold

WEEK = 7 * DAY
NEVER = float("inf")
AIMS = ("AUC ≥ .862, AP ≥ .678", "AP ≥ .72, rise < 0.1", "")


class Told(NamedTuple):
    """How payments are ranked, and how many ordinary ones score 0.85."""

    ranking: Ranking
    high: Share


class Confirmation(NamedTuple):
    """An attack that an officer confirms at `due`."""

    due: float
    event: Event
    state: AgentState
    was_learned: bool


class Office:
    """The officer's verdicts on one tenant's events, and the places they mark, as the service does it."""

    def __init__(self, states: Mapping[str, AgentState]) -> None:
        self.states = states
        self.context = Context()
        self._said: list[tuple[str, float, bool]] = []

    def confirm(self, one: Confirmation) -> None:
        """Mark the places that the attack went to; an agent that learned it forgets it."""
        places = places_of(
            one.event, one.state, self.context, self._is_common(one), was_learned=one.was_learned
        )
        unlearn(one.state, one.event, places, was_learned=one.was_learned)
        self._said += [(place, one.due, True) for place in places]
        self.context = msgspec.structs.replace(self.context, marked=weighed(self._said))

    def _is_common(self, one: Confirmation) -> Callable[[str], bool]:
        """What another agent knows is common; the service asks the tenant's baseline, too."""
        others = [state for state in self.states.values() if state is not one.state]
        return lambda name: any(
            state.destinations.knows(digest(name), state.fading(one.due)) for state in others
        )


def replayed(payments: Stream, *, delay: float) -> list[ReplayedEvent]:
    """The verdicts on all payments, each fraud confirmed `delay` seconds after it happened."""
    states: defaultdict[str, AgentState] = defaultdict(AgentState)
    office, waiting = Office(states), deque[Confirmation]()
    found = []
    for row in payments.rows:
        event, state = row.event, states[row.agent]
        while waiting and waiting[0].due <= event.received_at:
            office.confirm(waiting.popleft())
        verdict = fold(state, event, office.context)
        if row.is_attack:
            waiting.append(Confirmation(event.received_at + delay, event, state, verdict.band == LOW))
        found.append(ReplayedEvent(row, event, verdict))
    return found


def compared(payments: Stream) -> dict[str, Told]:
    """The figures without verdicts, with each a week later, and the most that those could tell."""
    without = replayed(payments, delay=NEVER)
    scores = [one.verdict.score for one in without]
    return {
        "no verdicts": _told(without, scores),
        "each fraud confirmed a week later": _told(replayed(payments, delay=WEEK)),
        "ceiling: frauds where one was confirmed stand first": _told(
            without,
            [score + told for score, told in zip(scores, _where_one_was_confirmed(without), strict=True)],
        ),
    }


def _where_one_was_confirmed(found: list[ReplayedEvent]) -> list[bool]:
    """Whether each payment is a fraud at a place where one was confirmed before, a week after it happened."""
    first: dict[str, float] = {}
    told = []
    for one in found:
        places = read(one.event.details).targets
        told.append(
            one.row.is_attack
            and any(first.get(name, NEVER) + WEEK <= one.event.received_at for name in places)
        )
        if one.row.is_attack:
            for name in places:
                first.setdefault(name, one.event.received_at)
    return told


def lines(found: dict[str, Told]) -> list[Line]:
    """A line for each, with the percentage points by which ordinary payments at 0.85 rise."""
    before = next(iter(found.values())).high.value or 0.0
    return [
        ["payments", "AUC", "AP", "ordinary at 0.85", "rise, points", "aim"],
        *(
            [
                name,
                decimals(one.ranking.auc),
                decimals(one.ranking.precision),
                f"{one.high.part} of {one.high.whole}",
                f"{100 * ((one.high.value or 0.0) - before):.2f}",
                aim,
            ]
            for (name, one), aim in zip(found.items(), AIMS, strict=True)
        ),
    ]


def _told(found: list[ReplayedEvent], scores: list[float] | None = None) -> Told:
    scores = scores or [one.verdict.score for one in found]
    ordinary = [one for one in found if not one.row.is_attack]
    return Told(ranking(scores, found, range(len(found))), share(ordinary, HIGH))
