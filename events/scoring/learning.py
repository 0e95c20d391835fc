"""How an event changes what the scorer remembers of its agent."""

from math import exp, log1p, sqrt

from events.scoring.contract import Event
from events.scoring.details import Facts
from events.scoring.packed import NUMBER, double_at, with_double
from events.scoring.priors import FAILURES, TRANSACTIONS
from events.scoring.state import (
    DAY,
    FADE,
    KIND,
    MAX_BIGRAMS,
    MAX_DESTINATIONS,
    MAX_HOSTS,
    MAX_RESOURCES,
    MAX_TOOLS,
    MAX_WAITING,
    PROBATION,
    RESCALE_AFTER,
    AgentState,
)
from events.scoring.tables import FORGOTTEN
from events.scoring.view import AMOUNT, HOST, OMITTED, READ_BEFORE, RESOURCE, SESSION_GAP, View

MEAN_RATE = 0.05
"""Share of a new value in the running means."""
LONG_RATE = 0.005
"""The same for the usual amount, so that it lags some two hundred transactions behind a slow climb."""


def learn(
    state: AgentState, event: Event, facts: Facts, seen: View, band: str, trusted: bool = False
) -> None:
    """Fold the event into the state: its last minutes always, its habits only if it scored low.

    A medium event leaves one trace, that the agent went somewhere new: one that always goes to new places
    would else be medium for good. Where it went is not learned.
    """
    _last_minutes(state, event, facts, seen)
    if band == "low":
        _habits(state, event, facts, seen, trusted)
    elif band == "medium" and seen.aims and (seen.new or not seen.destinations):
        _tried(state, KIND[event.action_type], True)


def _last_minutes(state: AgentState, event: Event, facts: Facts, seen: View) -> None:
    """Counts of what just happened; a transaction counts toward its day even when it was over a limit."""
    # Events overtake each other by moments; a clock that was set back is followed
    if event.received_at > state.last_at - SESSION_GAP:
        state.last_at = max(state.last_at, event.received_at)
    else:
        state.last_at = event.received_at
    state.burst = seen.burst + 1.0
    state.reads = seen.reads + (event.action_type == "data_access")
    state.failures = seen.failures + (event.action_type in FAILURES or facts.refused)
    state.anomalies = seen.anomalies + (event.action_type == "transaction_anomaly")
    if seen.has_tool:
        state.last_tool = seen.tool
    if event.action_type in TRANSACTIONS:
        today = int(event.received_at // DAY)
        state.day_usd = (state.day_usd if state.day == today else 0.0) + (facts.amount or 0.0)
        state.day = today


def _habits(state: AgentState, event: Event, facts: Facts, seen: View, trusted: bool) -> None:
    # Running means start as the plain mean and then forget slowly
    share = max(1.0 / (seen.learned + 1.0), MEAN_RATE)
    if seen.has_tool:
        state.tool_surprise += (seen.unigram - state.tool_surprise) * share
        state.bigram_surprise += (seen.bigram - state.bigram_surprise) * share
    if event.received_at - state.landmark > RESCALE_AFTER or not state.learned:
        _rescale(state, event.received_at)
    weight = exp((event.received_at - state.landmark) / FADE)
    state.burst_level += (log1p(seen.burst) - state.burst_level) * share
    state.learned += weight
    state.add_hour(seen.hour, weight)
    _remember_names(state, event, seen, weight, trusted)
    if event.action_type in TRANSACTIONS:
        _tried(state, AMOUNT, facts.amount is None)
        if facts.amount is not None:
            state.add_amount(sqrt(facts.amount))
            share = max(LONG_RATE, 1.0 / double_at(state.trials, AMOUNT * NUMBER))
            state.usual_amount += (log1p(facts.amount) - state.usual_amount) * share


def _remember_names(state: AgentState, event: Event, seen: View, weight: float, trusted: bool) -> None:
    fading = 1 / weight
    if seen.aims:
        names = seen.destinations
        if seen.new and seen.reads > READ_BEFORE and not trusted:
            names = [
                name
                for name in names
                if name not in seen.new_names
                or state.waiting.has_waited(name, seen.at, PROBATION, MAX_WAITING)
            ]
        for name in names:
            state.destinations.add(name, weight, MAX_DESTINATIONS)
        _tried(state, KIND[event.action_type], bool(seen.new) or not seen.destinations)
    if seen.hosts:
        least = min([state.hosts.add(name, weight, MAX_HOSTS) for name in seen.hosts])
        _tried(state, HOST, least * fading < FORGOTTEN)
    if seen.resource is not None:
        before = state.resources.add(seen.resource, weight, MAX_RESOURCES)
        _tried(state, RESOURCE, before * fading < FORGOTTEN)
    if seen.tool != OMITTED:
        state.tools.add(seen.tool, weight, MAX_TOOLS)
        state.bigrams.add(seen.pair, weight, MAX_BIGRAMS)
        if seen.destinations:
            state.aimed.add(seen.tool, weight, MAX_TOOLS)


def _tried(state: AgentState, kind: int, new: bool) -> None:
    """One more name of a kind: the share of new ones starts at 1 and follows the last twenty or so."""
    at = kind * NUMBER
    count, rate = double_at(state.trials, at), double_at(state.rates, at)
    share = max(MEAN_RATE, 1.0 / (count + 2.0))
    state.rates = with_double(state.rates, at, rate + (new - rate) * share)
    state.trials = with_double(state.trials, at, count + 1.0)


def _rescale(state: AgentState, now: float) -> None:
    """Move the landmark up to `now` before weights grow unwieldy, and to the first event at the start."""
    factor = exp(-min((now - state.landmark) / FADE, 700.0))
    state.landmark = now
    state.scale(factor)
