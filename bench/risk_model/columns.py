"""An event as numbers: what each of the scorer's differences from habit amounts to, before it is weighed."""

from collections.abc import Iterable
from typing import NamedTuple

from bench.risk_model.regimes import Part
from events.scoring import AgentState, Baseline, Context, Event, weights
from events.scoring.backtest import Agents, Row, scored
from events.scoring.details import read
from events.scoring.features import signals
from events.scoring.priors import PRIORS
from events.scoring.view import view

WEIGHTS = tuple(name for name in vars(weights) if name.isupper())


class Table(NamedTuple):
    """The events of a regime."""

    events: list[list[float]]
    rows: list[Row]


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
    facts = read(event.details)
    seen = view(state, event, facts)
    kept = {name: getattr(weights, name) for name in WEIGHTS}
    values = [PRIORS[event.action_type]]
    try:
        for name in WEIGHTS:
            setattr(weights, name, 0.0)
        for name in WEIGHTS:
            setattr(weights, name, 1.0)
            values.append(
                sum(signal.weight for signal in signals(state, event, context, facts, seen, baseline))
            )
            setattr(weights, name, 0.0)
    finally:
        for name, weight in kept.items():
            setattr(weights, name, weight)
    return values
