"""How events change an agent's state: as they are scored, from storage, or by an officer's review."""

import math
from collections.abc import Iterable

from events.risk.scoring.contract import Event
from events.risk.scoring.habits.comparison import (
    AMOUNT,
    HOST,
    READ_BEFORE,
    RESOURCE,
    SESSION_GAP,
    Comparison,
    compare,
)
from events.risk.scoring.habits.packed import NAME
from events.risk.scoring.habits.state import DAY, FADE, KIND, MEAN_RATE, PROBATION, RESCALE_AFTER, AgentState
from events.risk.scoring.habits.tables import FORGOTTEN, OMITTED, digest
from events.risk.scoring.weights import FAILURES, TRANSACTIONS

LONG_RATE = 0.005  # share of a new value in the usual amount, which lags behind a slow climb
MAX_DESTINATIONS, MAX_RESOURCES, MAX_HOSTS, MAX_WAITING = 56, 32, 16, 24
MAX_TOOLS, MAX_BIGRAMS = 40, 40
ORDINARY = "ordinary"  # the band under which `relearn()` takes an event that an officer dismissed
MOST_TAKEN_IN = 32
LAST_MINUTES = (
    "last_at", "burst", "reads", "failures", "anomalies", "last_tool", "day", "day_usd", "burst_level",
)  # fmt: skip


def learn(seen: Comparison, band: str, trusted: bool = False) -> None:
    """Fold the event into its agent's state: its last minutes always, its habits only if it scored low.

    A medium event only counts as going somewhere new, so that an agent that always does isn't medium for
    good; the place itself is not learned.
    """
    _last_minutes(seen)
    if band == "low":
        _habits(seen, trusted)
    elif band == "medium" and seen.aims and (seen.new or not seen.destinations):
        seen.state.count_trial(KIND[seen.event.action_type], True)


def teach(state: AgentState, event: Event) -> None:
    """Fold an event that is known to be ordinary into `state`, whatever it would score."""
    learn(compare(state, event), "low", trusted=True)


def teach_late(state: AgentState, event: Event) -> None:
    """Teach an event that was scored before: its habits only, as the last minutes already count it."""
    before = {name: getattr(state, name) for name in LAST_MINUTES}
    teach(state, event)
    for name, value in before.items():
        setattr(state, name, value)


def relearn(known: Iterable[tuple[Event, str]], *, start: AgentState | None = None) -> AgentState:
    """Return the state after one agent's events, oldest first, each with its band or `ORDINARY`.

    They go on from `start`, which stays as it is, or from an empty state.
    """
    state = AgentState() if start is None else start.changeable()
    for event, band in known:
        if band == ORDINARY:
            teach(state, event)
        else:
            learn(compare(state, event), band)
    return state


def unlearn(state: AgentState, places: Iterable[str]) -> None:
    for name in map(digest, places):
        for table in (state.destinations, state.hosts, state.waiting):
            if weight := table.get(name):
                table.add(name, -weight, 1)


def has_taken_in(state: AgentState, identity: bytes) -> bool:
    """Return whether the state holds this event or review already."""
    held = state.taken_in
    return identity[-NAME:] in {held[at : at + NAME] for at in range(0, len(held), NAME)}


def note_taken_in(state: AgentState, identities: Iterable[bytes]) -> None:
    """Note that the state holds these events or reviews: the last few, by the random ends of their ids."""
    held = state.taken_in + b"".join(identity[-NAME:] for identity in identities)
    state.taken_in = held[-MOST_TAKEN_IN * NAME :]


def _last_minutes(seen: Comparison) -> None:
    """Count what just happened; a transaction counts toward its day even if it was over a limit."""
    state, event, facts = seen.state, seen.event, seen.facts
    # Events overtake each other by moments, but a clock that was set back is followed
    is_near = event.received_at > state.last_at - SESSION_GAP
    state.last_at = max(state.last_at, event.received_at) if is_near else event.received_at
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


def _habits(seen: Comparison, trusted: bool) -> None:
    state, event, facts = seen.state, seen.event, seen.facts
    # Running means start as the plain mean and then forget slowly
    share = max(1.0 / (seen.learned + 1.0), MEAN_RATE)
    if seen.has_tool:
        state.tool_surprise += (seen.unigram - state.tool_surprise) * share
        state.bigram_surprise += (seen.bigram - state.bigram_surprise) * share
    if event.received_at - state.landmark > RESCALE_AFTER or not state.learned:
        _rescale(state, event.received_at)
    weight = math.exp((event.received_at - state.landmark) / FADE)
    state.burst_level += (math.log1p(seen.burst) - state.burst_level) * share
    state.learned += weight
    state.add_hour(seen.hour, weight)
    _remember_names(seen, weight, trusted)
    if event.action_type in TRANSACTIONS:
        state.count_trial(AMOUNT, facts.amount is None)
        if facts.amount is not None:
            state.add_amount(math.sqrt(facts.amount))
            share = max(LONG_RATE, 1.0 / state.trials_of(AMOUNT))
            state.usual_amount += (math.log1p(facts.amount) - state.usual_amount) * share


def _remember_names(seen: Comparison, weight: float, trusted: bool) -> None:
    state, fading = seen.state, 1 / weight
    if seen.aims:
        names = seen.destinations
        if seen.new and seen.reads > READ_BEFORE and not trusted:
            waits, new = state.waiting, seen.new_names
            names = [n for n in names if n not in new or waits.has_waited(n, seen.at, PROBATION, MAX_WAITING)]
        for name in names:
            state.destinations.add(name, weight, MAX_DESTINATIONS)
        state.count_trial(KIND[seen.event.action_type], bool(seen.new) or not seen.destinations)
    if seen.hosts:
        least = min([state.hosts.add(name, weight, MAX_HOSTS) for name in seen.hosts])
        state.count_trial(HOST, least * fading < FORGOTTEN)
    if seen.resource is not None:
        before = state.resources.add(seen.resource, weight, MAX_RESOURCES)
        state.count_trial(RESOURCE, before * fading < FORGOTTEN)
    if seen.tool != OMITTED:
        state.tools.add(seen.tool, weight, MAX_TOOLS)
        state.bigrams.add(seen.pair, weight, MAX_BIGRAMS)
        if seen.destinations:
            state.aimed.add(seen.tool, weight, MAX_TOOLS)


def _rescale(state: AgentState, now: float) -> None:
    """Move the landmark up to `now` before weights grow unwieldy, and to the first event at the start."""
    factor = math.exp(-min((now - state.landmark) / FADE, 700.0))
    state.landmark = now
    state.scale(factor)
