"""How an event changes what the scorer remembers of its agent."""

from math import exp, log1p

from events.scoring.contract import Event
from events.scoring.details import Facts
from events.scoring.features import OMITTED, View, bigram_surprise, tool_surprise
from events.scoring.priors import FAILURES, SENDING, TRANSACTIONS
from events.scoring.state import (
    DAY,
    FADE,
    MAX_AMOUNTS,
    MAX_BIGRAMS,
    MAX_DESTINATIONS,
    MAX_HOSTS,
    MAX_RESOURCES,
    MAX_TOOLS,
    RESCALE_AFTER,
    AgentState,
    Weights,
    known,
    remember,
)

MEAN_RATE = 0.05
"""Share of a new value in the running means."""


def after(state: AgentState, event: Event, facts: Facts, seen: View, *, habitual: bool) -> AgentState:
    """The state after the event: its last minutes always, its habits only if `habitual`."""
    changed = state.changeable()
    _last_minutes(changed, event, facts, seen)
    if habitual:
        _habits(changed, event, facts, seen)
    return changed


def _last_minutes(state: AgentState, event: Event, facts: Facts, seen: View) -> None:
    """Counts of what just happened; a transaction counts toward its day even when it was over a limit."""
    state.last_at = max(event.received_at, state.last_at)
    state.burst = seen.burst + 1.0
    state.reads = seen.reads + (event.action_type == "data_access")
    state.failures = seen.failures + (event.action_type in FAILURES or facts.failed)
    state.anomalies = seen.anomalies + (event.action_type == "transaction_anomaly")
    if seen.has_tool:
        state.last_tool = seen.tool
    if event.action_type in TRANSACTIONS:
        today = int(event.received_at // DAY)
        state.day_usd = (state.day_usd if state.day == today else 0.0) + (facts.amount or 0.0)
        state.day = today


def _habits(state: AgentState, event: Event, facts: Facts, seen: View) -> None:
    if seen.has_tool:
        unigram = tool_surprise(state, seen)
        bigram = bigram_surprise(state, seen, unigram)
        state.tool_surprise = _mean(state.tool_surprise, unigram, seen.learned)
        state.bigram_surprise = _mean(state.bigram_surprise, bigram, seen.learned)
    _rescale(state, event.received_at)
    weight = exp((event.received_at - state.landmark) / FADE)
    state.burst_level = _mean(state.burst_level, log1p(seen.burst), seen.learned)
    state.learned += weight
    _remember_names(state, event, seen, weight)
    if event.action_type in TRANSACTIONS:
        _tried(state, "amount", new=facts.amount is None)
        if facts.amount is not None:
            state.amounts = (*state.amounts, log1p(facts.amount))[-MAX_AMOUNTS:]


def _remember_names(state: AgentState, event: Event, seen: View, weight: float) -> None:
    aimed = bool(seen.destinations)
    if event.action_type in SENDING and (aimed or seen.expects_target):
        new = not aimed or any(not known(state.destinations, name, 1 / weight) for name in seen.destinations)
        _tried(state, event.action_type, new=new)
        for name in seen.destinations:
            remember(state.destinations, name, weight, MAX_DESTINATIONS)
    if seen.host is not None and aimed:
        _learn(state, "host", state.hosts, seen.host, weight, MAX_HOSTS)
    if seen.resource is not None:
        _learn(state, "resource", state.resources, seen.resource, weight, MAX_RESOURCES)
    if seen.tool != OMITTED:
        remember(state.tools, seen.tool, weight, MAX_TOOLS)
        remember(state.bigrams, seen.pair, weight, MAX_BIGRAMS)
        if aimed:
            remember(state.aimed, seen.tool, weight, MAX_TOOLS)


def _learn(state: AgentState, kind: str, weights: Weights, name: int, weight: float, limit: int) -> None:
    _tried(state, kind, new=not known(weights, name, 1 / weight))
    remember(weights, name, weight, limit)


def _tried(state: AgentState, kind: str, *, new: bool) -> None:
    """One more name of a kind: the share of new ones starts at 1 and follows the last twenty or so."""
    trials, rate = state.trials.get(kind, 0.0), state.rates.get(kind, 1.0)
    state.rates[kind] = rate + (new - rate) * max(MEAN_RATE, 1.0 / (trials + 2.0))
    state.trials[kind] = trials + 1.0


def _mean(mean: float, value: float, learned: float) -> float:
    """A running mean that starts as the plain mean and then forgets slowly."""
    return mean + (value - mean) * max(MEAN_RATE, 1.0 / (learned + 1.0))


def _rescale(state: AgentState, now: float) -> None:
    """Move the landmark up to `now` before weights grow unwieldy, and to the first event at the start."""
    age = now - state.landmark
    if age <= RESCALE_AFTER and state.learned > 0:
        return
    factor = exp(-min(age / FADE, 700.0))
    state.landmark = now
    state.learned *= factor
    for weights in (
        state.tools,
        state.aimed,
        state.bigrams,
        state.destinations,
        state.resources,
        state.hosts,
    ):
        for name in weights:
            weights[name] *= factor
