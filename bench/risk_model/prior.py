"""All agents' prior, fitted anew without what is judged by it: the scorer's `model.USUAL` of other suites.

Each stream counts as much as another. Of agents with few events the most surprising stream counts, so that
the prior holds for every one of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from bench.risk_model.regimes import Stream, Way
from events.risk.evaluation.backtest import Learned, StreamEvent
from events.risk.scoring import model
from events.risk.scoring.comparison import Comparison
from events.risk.scoring.contract import NO_CONTEXT
from events.risk.scoring.state import AgentState

SAMPLE = 5_000  # events that a stream counts as
LEAST = 60  # events from which a stream counts
MARGIN = 0.2  # log-odds added to the last knot, which few events tell
Evidence = dict[int, list[float]]
"""How much evidence there was against ordinary events, by the row of `model.USUAL`."""
Usual = tuple[tuple[float, ...], ...]


def evidence(stream: Stream, way: Way) -> Evidence:
    """Replay a stream and return the evidence against its ordinary events."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for part in way.parts(stream):
        for row, seen in _weighed(part.runs, stream, part.learned, apart=way.apart):
            if not row.is_attack and seen.surprise >= 0.0:
                found[model.row_of(seen)].append(seen.counts)
    return dict(found)


def _weighed(
    rows: Iterable[StreamEvent], stream: Stream, learned: Learned, *, apart: bool
) -> Iterator[tuple[StreamEvent, Comparison]]:
    states: dict[str, AgentState] = {}
    for row in rows:
        agent, key = row.agent, row.run if apart else row.agent
        if key not in states:
            states[key] = learned.states[agent].changeable() if agent in learned.states else AgentState()
        context = stream.agents.contexts.get(agent, NO_CONTEXT)
        tenant = stream.agents.tenants.get(agent)
        baseline = learned.baselines.get(tenant) if tenant else None
        yield row, model.weighed(states[key], row.event, context, baseline)
        model.fold(states[key], row.event, context, baseline)


def fitted(streams: Mapping[str, list[Evidence]], without: Collection[str]) -> Usual:
    """Return `model.USUAL` of all streams but these."""
    shares = 1.0 - np.exp(-np.array(model.NATS))
    rows = []
    for row, shipped in enumerate(model.USUAL):
        samples = [
            np.quantile(one[row], (np.arange(SAMPLE) + 0.5) / SAMPLE)
            for name, all_of_it in streams.items()
            if name not in without
            for one in all_of_it
            if len(one.get(row, ())) >= LEAST
        ]
        if not samples:
            rows.append(shipped)
            continue
        pooled = [np.concatenate(samples)] if row >= len(model.STAGES) else samples
        knots = np.max([np.quantile(sample, shares) for sample in pooled], axis=0)
        knots[-1] += MARGIN
        # Strictly rising, since one value can be many events'
        rows.append(tuple(float(knot) + 1e-6 * place for place, knot in enumerate(knots)))
    return tuple(rows)


@contextmanager
def judging_by(usual: Usual) -> Iterator[None]:
    """Score by this prior inside the block."""
    before = model.USUAL
    try:
        model.USUAL = usual
        yield
    finally:
        model.USUAL = before
