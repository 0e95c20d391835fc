"""Verdicts together with the state after the event, for tests that go on from it."""

from events.risk.scoring.contract import Context, Event, RiskVerdict
from events.risk.scoring.model import fold
from events.risk.scoring.state import AgentState, Baseline


class Assessment(RiskVerdict, frozen=True, gc=False):
    """A verdict, and the agent's state after the event."""

    state: AgentState


def assess(state: AgentState, event: Event, context: Context, baseline: Baseline | None = None) -> Assessment:
    """Like `fold()`, but leave `state` as it was."""
    after = state.changeable()
    verdict = fold(after, event, context, baseline)
    return Assessment(verdict.score, verdict.band, verdict.reasons, verdict.model_version, after)
