"""An event as numbers: what each of the scorer's differences from habit amounts to, before it is weighed."""

from collections.abc import Iterable
from typing import NamedTuple

from bench.risk_model.regimes import Part
from events.risk.evaluation.backtest import Agents, StreamEvent, scored
from events.risk.scoring import weights
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.features import signals
from events.risk.scoring.habits.baseline import Baseline
from events.risk.scoring.habits.comparison import compare
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.weights import PRIORS

WEIGHTS = tuple(name for name in vars(weights) if name.isupper())


class Table(NamedTuple):
    """The events of a regime."""

    events: list[list[float]]
    rows: list[StreamEvent]


def table(parts: Iterable[Part], agents: Agents, *, apart: bool) -> Table:
    """Each event's columns, as its agent's state makes them."""
    found = Table([], [])

    def look(state: AgentState, event: Event, context: Context, baseline: Baseline | None) -> None:
        found.events.append(columns(state, event, context, baseline))

    for part in parts:
        found.rows.extend(
            one.row for one in scored(part.runs, agents, part.learned, runs_apart=apart, look=look)
        )
    return found


def columns(state: AgentState, event: Event, context: Context, baseline: Baseline | None) -> list[float]:
    """The action type's prior, and the value of each difference."""
    seen = compare(state, event)
    kept = {name: getattr(weights, name) for name in WEIGHTS}
    values = [PRIORS[event.action_type]]
    try:
        for name in WEIGHTS:
            setattr(weights, name, 0.0)
        for name in WEIGHTS:
            setattr(weights, name, 1.0)
            values.append(sum(weight for _, weight, _, _ in signals(seen, context, baseline)))
            setattr(weights, name, 0.0)
    finally:
        for name, weight in kept.items():
            setattr(weights, name, weight)
    return values
