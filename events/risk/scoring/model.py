"""The model: one event in, a verdict and the agent's next state out."""

import math
from collections.abc import Iterable
from functools import cache

from agents.risk import MEDIUM, band_of
from events.risk.scoring.comparison import Comparison
from events.risk.scoring.contract import (
    PRIOR_LOGITS,
    PRIORS,
    REPORTED,
    SENDING,
    TRANSACTIONS,
    Context,
    Event,
    RiskVerdict,
    ScoreReason,
)
from events.risk.scoring.details import read
from events.risk.scoring.features import signals
from events.risk.scoring.learning import learn
from events.risk.scoring.marked import marked_signals
from events.risk.scoring.reasons import LEAST_TOLD, MEANINGS, Signal, declare, itself, strongest
from events.risk.scoring.rules import broken_rules, floor_of, scope_mismatch
from events.risk.scoring.state import DAY, AgentState, Baseline

MODEL_VERSION = "3.0"  # changes whenever the same events would score differently; stored with every event
HABITS_CAP = 0.84  # the score that differences from habit reach by themselves at most: they stop nobody
ENOUGH_HABITS = 30.0  # learned events (faded) from which habits may carry a reported anomaly into high
MEDIUM_LOGIT = math.log(MEDIUM / (1 - MEDIUM))
BEND, PAST_BEND = 1.0, 0.2  # log-odds (a score of 0.73) past which evidence counts, and by which share


def fold(state: AgentState, event: Event, context: Context, baseline: Baseline | None = None) -> RiskVerdict:
    """Score an agent's event and fold it into `state` itself; the tenant's `baseline` is only read.

    Only low events become habits, so that an attack doesn't; of a medium one the places, payees and acts are
    noted (`learning`). Raises KeyError for an unknown `action_type`, and leaves `state` as it was.
    """
    prior_logit = PRIOR_LOGITS[event.action_type]
    seen = Comparison(state, event)
    as_call = bool(seen.aims) and event.action_type not in SENDING  # it says where it sends to
    if as_call:
        prior_logit = PRIOR_LOGITS["api_call"]
    broken = broken_rules(seen, context)
    evidence = signals(seen, context, baseline) + scope_mismatch(seen, context)
    said = marked_signals(seen, context.marked) if context.marked.confirmed else []
    # Beside what the agent or an officer said, habits may make an event high; alone they may not
    judged = seen.learned >= ENOUGH_HABITS or (baseline is not None and baseline.is_enough(seen.at))
    capped = not (judged and (said or event.action_type in REPORTED))
    evidence += said
    score = combine(prior_logit, evidence, len(broken), capped)
    band = band_of(score)
    if broken:
        reasons = strongest(broken, evidence)
    else:
        prior = _worth_by_itself("api_call" if as_call else event.action_type)
        # First where it decides, last where there is room
        if prior_logit >= MEDIUM_LOGIT:
            reasons = (prior, *strongest([], evidence, 2))
        else:
            reasons = (*strongest([], evidence), prior)[:3]
    learn(seen, band)
    return RiskVerdict(score, band, reasons, MODEL_VERSION)


def combine(prior_logit: float, evidence: list[Signal], broken: int, capped: bool) -> float:
    """Return the score: the evidence's log-odds added to the prior's, between cap and floor."""
    total = 0.0
    for _, weight, _, _ in evidence:  # not sum(), which rounds differently from one Python to the next
        total += weight
    logit = prior_logit + total
    if logit > BEND:
        logit = BEND + (logit - BEND) * PAST_BEND
    score = 1 / (1 + math.exp(-logit))
    if capped and score > HABITS_CAP:
        score = HABITS_CAP
    if broken:
        score = max(score, floor_of(broken))
    return int(score * 10_000 + 0.5) / 10_000  # round() takes three times as long


def with_day_total(state: AgentState, events: Iterable[Event], *, received_at: float) -> AgentState:
    """Return a copy of `state` whose daily total is that of all `events` on the UTC day of `received_at`."""
    day = int(received_at // DAY)
    total = sum(
        read(event.details).amount or 0.0
        for event in events
        if event.action_type in TRANSACTIONS and int(event.received_at // DAY) == day
    )
    counted = state.changeable()
    counted.day, counted.day_usd = day, total
    return counted


declare("action_type", "What such an action is worth by itself", itself, "scores {:.2f} by itself".format)


@cache
def _worth_by_itself(action_type: str) -> ScoreReason:
    (prior,) = strongest([("action_type", LEAST_TOLD, action_type, PRIORS[action_type])], [])
    return prior


def in_words(name: str) -> str:
    """Return the reason's sentence, or its name in words."""
    meaning = MEANINGS.get(name)
    return meaning.sentence if meaning else name.replace("_", " ").capitalize()
