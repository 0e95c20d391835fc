"""The model: one event in, a verdict and the agent's next state out."""

from collections.abc import Iterable
from functools import cache

from agents.risk import band_of
from events.scoring.baseline import Baseline
from events.scoring.contract import Assessment, Context, Event, Verdict
from events.scoring.details import read
from events.scoring.features import signals
from events.scoring.head import ENOUGH_HABITS, combine
from events.scoring.learning import learn
from events.scoring.priors import PRIOR_LOGITS, PRIORS, TRANSACTIONS
from events.scoring.reasons import LEAST_TOLD, Reason, signal, strongest
from events.scoring.rules import broken_rules
from events.scoring.state import DAY, AgentState
from events.scoring.view import view

MODEL_VERSION = "2.2"
"""Changes whenever the same events would score differently; stored with every event."""


def fold(state: AgentState, event: Event, context: Context, baseline: Baseline | None = None) -> Verdict:
    """Score one event of an agent and fold it into `state` itself; `baseline`, the tenant's, is only read.

    `event.action_type` is one of the ten types (anything else is a KeyError, and `state` as it was: validate
    first); details may be anything. Events scored medium or high are not learned from, so an attack doesn't
    become a habit.
    """
    prior_logit = PRIOR_LOGITS[event.action_type]
    facts = read(event.details)
    seen = view(state, event, facts)
    broken = broken_rules(state, event, context, facts, seen.anomalies)
    evidence = signals(state, event, context, facts, seen, baseline)
    judged = seen.learned >= ENOUGH_HABITS or (baseline is not None and baseline.is_enough(seen.at))
    score = combine(prior_logit, evidence, len(broken), not judged)
    band = band_of(score)
    reasons = strongest(broken + evidence if broken else evidence) or _nothing_unusual(event.action_type)
    learn(state, event, facts, seen, band)
    return Verdict(score, band, reasons, MODEL_VERSION)


def assess(state: AgentState, event: Event, context: Context, baseline: Baseline | None = None) -> Assessment:
    """`fold()` into a copy: the verdict and the state after the event; `state` itself is left as it was."""
    after = state.changeable()
    verdict = fold(after, event, context, baseline)
    return Assessment(verdict.score, verdict.band, verdict.reasons, verdict.model_version, after)


def teach(state: AgentState, event: Event) -> None:
    """Fold an event that is known to be ordinary into `state`, whatever it would score."""
    facts = read(event.details)
    learn(state, event, facts, view(state, event, facts), "low", trusted=True)


def with_day_total(state: AgentState, events: Iterable[Event], *, received_at: float) -> AgentState:
    """`state` with the day's total of transactions taken from all `events` of the UTC day of `received_at`.

    For a state rebuilt from fewer events than the day had.
    """
    day = int(received_at // DAY)
    total = sum(
        read(event.details).amount or 0.0
        for event in events
        if event.action_type in TRANSACTIONS and int(event.received_at // DAY) == day
    )
    counted = state.changeable()
    counted.day, counted.day_usd = day, total
    return counted


@cache
def _nothing_unusual(action_type: str) -> tuple[Reason, ...]:
    """The reason of an event that only its type speaks for."""
    return strongest([signal("action_type", LEAST_TOLD, action_type, PRIORS[action_type])])
