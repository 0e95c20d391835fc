"""An event as numbers: what each of the scorer's differences from habit amounts to, before it is weighed."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from bench.risk_model.regimes import Part
from events.risk.evaluation.backtest import Agents, StreamEvent, scored
from events.risk.scoring import weights
from events.risk.scoring.contract import Context, Event
from events.risk.scoring.features.evidence import signals
from events.risk.scoring.habits.baseline import Baseline
from events.risk.scoring.habits.comparison import compare
from events.risk.scoring.habits.state import AgentState
from events.risk.scoring.weights import PRIOR_LOGITS

WEIGHTS = tuple(name for name, value in vars(weights).items() if name.isupper() and isinstance(value, float))
SMALL = 1e-6
"""A weight at which no difference is near a bound of the scorer's."""


class Table(NamedTuple):
    """The events of a regime."""

    events: list[list[float]]
    rows: list[StreamEvent]


@contextmanager
def weighed(chosen: Mapping[str, float]) -> Iterator[None]:
    """Let the scorer use these weights meanwhile."""
    before = {name: getattr(weights, name) for name in chosen}
    _set(chosen)
    try:
        yield
    finally:
        _set(before)


def _set(chosen: Mapping[str, float]) -> None:
    for name, weight in chosen.items():
        setattr(weights, name, weight)


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
    """The log-odds of the action type's prior, and each difference in the order of `WEIGHTS`, unbounded.

    A difference is what one unit of its weight adds while weights are small.
    """
    seen = compare(state, event)
    values = [PRIOR_LOGITS[event.action_type]]
    with weighed(dict.fromkeys(WEIGHTS, 0.0)):
        for name in WEIGHTS:
            setattr(weights, name, SMALL)
            values.append(sum(weight for _, weight, _, _ in signals(seen, context, baseline)) / SMALL)
            setattr(weights, name, 0.0)
    return values
